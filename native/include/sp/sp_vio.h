/* Cameras, and a scaler of frames (VPS), of RDK boards in C: libspcdev, here over files and pictures.
 *
 * A function returns 0, or -1. Frames are NV12: Y, then UV, of `width` bytes a row.
 *
 * Source: RDK documentation, C multimedia interface, VIO, https://github.com/HorizonRDK/rdk_x3_doc; sp_open_camera_v3
 * as https://github.com/D-Robotics/x5-hobot-spdev declares it (Apache 2.0).
 */
#ifndef HBRT_SP_VIO_H
#define HBRT_SP_VIO_H

#include <stdint.h>

/* What a scaler does: proc_mode. */
#define SP_VPS_SCALE 1
#define SP_VPS_SCALE_CROP 2
#define SP_VPS_SCALE_ROTATE 3
#define SP_VPS_SCALE_ROTATE_CROP 4
/* Which camera's connector: video_index. */
#define SP_HOST_0 0
#define SP_HOST_1 1
#define SP_HOST_2 2
#define SP_HOST_3 3
#define SP_HOST_AUTO_DETECT (-1)
/* Bytes of a frame. */
#define FRAME_BUFFER_SIZE(w, h) ((w) * (h) * (3) / (2))

#ifdef __cplusplus
extern "C" {
#endif

/* What a sensor gives: its size, and frames a second; -1 for its default. */
typedef struct {
  int32_t raw_height;
  int32_t raw_width;
  int32_t fps;
} sp_sensors_parameters;

void *sp_init_vio_module(void);
void sp_release_vio_module(void *obj);

/* Open a camera, with frames in `chn_num` sizes. */
int32_t sp_open_camera(void *obj, const int32_t pipe_id, const int32_t video_index, int32_t chn_num, int32_t *width, int32_t *height);
int32_t sp_open_camera_v2(void *obj, const int32_t pipe_id, const int32_t video_index, int32_t chn_num,
                          sp_sensors_parameters *parameters, int32_t *width, int32_t *height);
/* The same, of which each size has a crop and a turn, in degrees; their addresses may be NULL. */
int32_t sp_open_camera_v3(void *obj, const int32_t pipe_id, const int32_t video_index, int32_t chn_num,
                          sp_sensors_parameters *parameters, int32_t *width, int32_t *height, int32_t *crop_x,
                          int32_t *crop_y, int32_t *crop_width, int32_t *crop_height, int32_t *rotate);
/* Open a scaler of frames that sp_vio_set_frame gives, or that are bound. */
int32_t sp_open_vps(void *obj, const int32_t pipe_id, int32_t chn_num, int32_t proc_mode, int32_t src_width, int32_t src_height,
                    int32_t *dst_width, int32_t *dst_height, int32_t *crop_x, int32_t *crop_y, int32_t *crop_width,
                    int32_t *crop_height, int32_t *rotate);
int32_t sp_vio_close(void *obj);

/* The next frame, in a size that was opened. */
int32_t sp_vio_get_frame(void *obj, char *frame_buffer, int32_t width, int32_t height, const int32_t timeout);
int32_t sp_vio_set_frame(void *obj, void *frame_buffer, int32_t size);
/* A sensor's own data, which no file has: always -1. */
int32_t sp_vio_get_raw(void *obj, char *frame_buffer, int32_t width, int32_t height, const int32_t timeout);
/* The next frame in the sensor's size, which is also meant by 0. */
int32_t sp_vio_get_yuv(void *obj, char *frame_buffer, int32_t width, int32_t height, const int32_t timeout);

#ifdef __cplusplus
}
#endif

#endif
