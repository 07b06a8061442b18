/* The place of a call: the runtime's headers pass file and line of each call to it, as one string.
 *
 * The functions also exist under their own names, for function pointers and for code built without these headers; the
 * runtime then finds the place from the return address, which takes longer.
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
