/* Helpers for the 2D engine: names and sizes of pixel formats.
 *
 * Source: librga (Apache 2.0), https://github.com/airockchip/librga
 */
#ifndef _rga_utils_h_
#define _rga_utils_h_

/* Bytes per pixel over all planes; 0 for an unknown format. */
float get_bpp_from_format(int format);
/* Bytes per pixel in the first plane. */
int get_perPixel_stride_from_format(int format);
/* The name of a format without its prefix, in lower case. */
const char *translate_format_str(int format);

#endif
