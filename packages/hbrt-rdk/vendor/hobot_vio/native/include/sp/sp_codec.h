/* Encoders and decoders of RDK boards in C: libspcdev.
 *
 * Functions return 0, or -1. Frames are NV12; a stream is H.264, H.265 or MJPEG.
 *
 * Source: RDK documentation, C multimedia interface, ENCODER and DECODER, https://github.com/HorizonRDK/rdk_x3_doc; the
 * numbers as in https://github.com/D-Robotics/x5-hobot-spdev (Apache 2.0).
 */
#ifndef HBRT_SP_CODEC_H
#define HBRT_SP_CODEC_H

#include <stdint.h>

#define SP_ENCODER_H264 1
#define SP_ENCODER_H265 2
#define SP_ENCODER_MJPEG 3

#ifdef __cplusplus
extern "C" {
#endif

void *sp_init_encoder_module(void);
void sp_release_encoder_module(void *obj);
int32_t sp_start_encode(void *obj, int32_t chn, int32_t type, int32_t width, int32_t height, int32_t bits);
int32_t sp_stop_encode(void *obj);
int32_t sp_encoder_set_frame(void *obj, char *frame_buffer, int32_t size);
/* Get the next part of the stream; returns its size in bytes. */
int32_t sp_encoder_get_stream(void *obj, char *stream_buffer);

void *sp_init_decoder_module(void);
void sp_release_decoder_module(void *obj);
/* Start decoding a stream file, or pass "" to feed it by sp_decoder_set_image. */
int32_t sp_start_decode(void *obj, const char *stream_file, int32_t video_chn, int32_t type, int32_t width, int32_t height);
int32_t sp_decoder_get_image(void *obj, char *image_buffer);
int32_t sp_decoder_set_image(void *obj, char *image_buffer, int32_t chn, int32_t size, int32_t eos);
int32_t sp_stop_decode(void *obj);

#ifdef __cplusplus
}
#endif

#endif
