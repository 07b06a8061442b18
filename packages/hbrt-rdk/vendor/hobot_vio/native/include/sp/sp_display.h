/* The display of RDK boards in C: libspcdev. Layers 0 and 1 show frames, 2 and 3 graphics.
 *
 * Functions return 0, or -1.
 *
 * Source: RDK documentation, C multimedia interface, DISPLAY, https://github.com/HorizonRDK/rdk_x3_doc
 */
#ifndef HBRT_SP_DISPLAY_H
#define HBRT_SP_DISPLAY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void *sp_init_display_module(void);
void sp_release_display_module(void *obj);
int32_t sp_start_display(void *obj, int32_t chn, int32_t width, int32_t height);
int32_t sp_stop_display(void *obj);
int32_t sp_display_set_image(void *obj, char *addr, int32_t size, int32_t chn);
/* Draw in an ARGB8888 color; with `flush` 1, clear the layer first. Text is encoded in GB 2312. */
int32_t sp_display_draw_rect(void *obj, int32_t x0, int32_t y0, int32_t x1, int32_t y1, int32_t chn, int32_t flush, int32_t color,
                             int32_t line_width);
int32_t sp_display_draw_string(void *obj, int32_t x, int32_t y, char *str, int32_t chn, int32_t flush, int32_t color,
                               int32_t line_width);
void sp_get_display_resolution(int32_t *width, int32_t *height);

#ifdef __cplusplus
}
#endif

#endif
