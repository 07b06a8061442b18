/* Cameras and a frame scaler (VPS) of RDK boards in C: libspcdev, fed here from files and pictures.
 *
 * Functions return 0, or -1. Frames are NV12: Y, then UV, with `width` bytes per row.
 *
 * Source: RDK documentation, C multimedia interface, VIO, https://github.com/HorizonRDK/rdk_x3_doc; sp_open_camera_v3
 * as in https://github.com/D-Robotics/x5-hobot-spdev (Apache 2.0).
 */
#ifndef HBRT_SP_VIO_H
#define HBRT_SP_VIO_H

#include <stdint.h>

/* Operations of a scaler: proc_mode. */
#define SP_VPS_SCALE 1
#define SP_VPS_SCALE_CROP 2
#define SP_VPS_SCALE_ROTATE 3
#define SP_VPS_SCALE_ROTATE_CROP 4
/* Camera connector: video_index. */
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

/* A sensor's output: its size, and frames per second; -1 for its default. */
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
/* The same, with a crop and a rotation in degrees for each size; these pointers may be NULL. */
int32_t sp_open_camera_v3(void *obj, const int32_t pipe_id, const int32_t video_index, int32_t chn_num,
                          sp_sensors_parameters *parameters, int32_t *width, int32_t *height, int32_t *crop_x,
                          int32_t *crop_y, int32_t *crop_width, int32_t *crop_height, int32_t *rotate);
/* Open a scaler for frames that come from sp_vio_set_frame or from a bound object. */
int32_t sp_open_vps(void *obj, const int32_t pipe_id, int32_t chn_num, int32_t proc_mode, int32_t src_width, int32_t src_height,
                    int32_t *dst_width, int32_t *dst_height, int32_t *crop_x, int32_t *crop_y, int32_t *crop_width,
                    int32_t *crop_height, int32_t *rotate);
int32_t sp_vio_close(void *obj);

/* Get the next frame, in one of the opened sizes. */
int32_t sp_vio_get_frame(void *obj, char *frame_buffer, int32_t width, int32_t height, const int32_t timeout);
int32_t sp_vio_set_frame(void *obj, void *frame_buffer, int32_t size);
/* A sensor's raw data, which files do not contain: always -1. */
int32_t sp_vio_get_raw(void *obj, char *frame_buffer, int32_t width, int32_t height, const int32_t timeout);
/* Get the next frame in the sensor's size; 0 also means that size. */
int32_t sp_vio_get_yuv(void *obj, char *frame_buffer, int32_t width, int32_t height, const int32_t timeout);

#ifdef __cplusplus
}
#endif

#endif
