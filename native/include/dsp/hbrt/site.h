/* Where a call stands: the headers of the runtime hand file and line of each call to it, as one string.
 *
 * The functions are there under their own names as well, for pointers to them and for code that was built without these
 * headers; the runtime then finds the place by the return address, which takes longer.
 */
#ifndef HBRT_SITE_H
#define HBRT_SITE_H

#define HBRT_TEXT_(text) #text
#define HBRT_TEXT(text) HBRT_TEXT_(text)
#define HBRT_SITE __FILE__ ":" HBRT_TEXT(__LINE__)

#ifdef __cplusplus
#define HBRT_BEGIN extern "C" {
#define HBRT_END }
#else
#define HBRT_BEGIN
#define HBRT_END
#endif

#endif /* HBRT_SITE_H */
