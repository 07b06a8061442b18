/** libspcdev's functions for cameras, codecs and displays, listed as in entry.h. hobot_vio/c_names.py
 * implements them. */
#define HBRT_SP_CALLS(CALL) \
  CALL(void *, sp_init_vio_module, NULL, (void), (), "c_void_p") \
  CALL(void, sp_release_vio_module, (void)0, (void *obj), (obj), "None c_void_p") \
  CALL(int32_t, sp_open_camera, -1, (void *obj, const int32_t pipe_id, const int32_t video_index, int32_t chn_num, int32_t *width, int32_t *height), (obj, pipe_id, video_index, chn_num, width, height), "c_int32 c_void_p c_int32 c_int32 c_int32 c_void_p c_void_p") \
  CALL(int32_t, sp_open_camera_v2, -1, (void *obj, const int32_t pipe_id, const int32_t video_index, int32_t chn_num, sp_sensors_parameters *parameters, int32_t *width, int32_t *height), (obj, pipe_id, video_index, chn_num, parameters, width, height), "c_int32 c_void_p c_int32 c_int32 c_int32 c_void_p c_void_p c_void_p") \
  CALL(int32_t, sp_open_camera_v3, -1, (void *obj, const int32_t pipe_id, const int32_t video_index, int32_t chn_num, sp_sensors_parameters *parameters, int32_t *width, int32_t *height, int32_t *crop_x, int32_t *crop_y, int32_t *crop_width, int32_t *crop_height, int32_t *rotate), (obj, pipe_id, video_index, chn_num, parameters, width, height, crop_x, crop_y, crop_width, crop_height, rotate), "c_int32 c_void_p c_int32 c_int32 c_int32 c_void_p c_void_p c_void_p c_void_p c_void_p c_void_p c_void_p c_void_p") \
  CALL(int32_t, sp_open_vps, -1, (void *obj, const int32_t pipe_id, int32_t chn_num, int32_t proc_mode, int32_t src_width, int32_t src_height, int32_t *dst_width, int32_t *dst_height, int32_t *crop_x, int32_t *crop_y, int32_t *crop_width, int32_t *crop_height, int32_t *rotate), (obj, pipe_id, chn_num, proc_mode, src_width, src_height, dst_width, dst_height, crop_x, crop_y, crop_width, crop_height, rotate), "c_int32 c_void_p c_int32 c_int32 c_int32 c_int32 c_int32 c_void_p c_void_p c_void_p c_void_p c_void_p c_void_p c_void_p") \
  CALL(int32_t, sp_vio_close, -1, (void *obj), (obj), "c_int32 c_void_p") \
  CALL(int32_t, sp_vio_get_frame, -1, (void *obj, char *frame_buffer, int32_t width, int32_t height, const int32_t timeout), (obj, frame_buffer, width, height, timeout), "c_int32 c_void_p c_void_p c_int32 c_int32 c_int32") \
  CALL(int32_t, sp_vio_set_frame, -1, (void *obj, void *frame_buffer, int32_t size), (obj, frame_buffer, size), "c_int32 c_void_p c_void_p c_int32") \
  CALL(int32_t, sp_vio_get_raw, -1, (void *obj, char *frame_buffer, int32_t width, int32_t height, const int32_t timeout), (obj, frame_buffer, width, height, timeout), "c_int32 c_void_p c_void_p c_int32 c_int32 c_int32") \
  CALL(int32_t, sp_vio_get_yuv, -1, (void *obj, char *frame_buffer, int32_t width, int32_t height, const int32_t timeout), (obj, frame_buffer, width, height, timeout), "c_int32 c_void_p c_void_p c_int32 c_int32 c_int32") \
  CALL(void *, sp_init_encoder_module, NULL, (void), (), "c_void_p") \
  CALL(void, sp_release_encoder_module, (void)0, (void *obj), (obj), "None c_void_p") \
  CALL(int32_t, sp_start_encode, -1, (void *obj, int32_t chn, int32_t type, int32_t width, int32_t height, int32_t bits), (obj, chn, type, width, height, bits), "c_int32 c_void_p c_int32 c_int32 c_int32 c_int32 c_int32") \
  CALL(int32_t, sp_stop_encode, -1, (void *obj), (obj), "c_int32 c_void_p") \
  CALL(int32_t, sp_encoder_set_frame, -1, (void *obj, char *frame_buffer, int32_t size), (obj, frame_buffer, size), "c_int32 c_void_p c_void_p c_int32") \
  CALL(int32_t, sp_encoder_get_stream, -1, (void *obj, char *stream_buffer), (obj, stream_buffer), "c_int32 c_void_p c_void_p") \
  CALL(void *, sp_init_decoder_module, NULL, (void), (), "c_void_p") \
  CALL(void, sp_release_decoder_module, (void)0, (void *obj), (obj), "None c_void_p") \
  CALL(int32_t, sp_start_decode, -1, (void *obj, const char *stream_file, int32_t video_chn, int32_t type, int32_t width, int32_t height), (obj, stream_file, video_chn, type, width, height), "c_int32 c_void_p c_void_p c_int32 c_int32 c_int32 c_int32") \
  CALL(int32_t, sp_decoder_get_image, -1, (void *obj, char *image_buffer), (obj, image_buffer), "c_int32 c_void_p c_void_p") \
  CALL(int32_t, sp_decoder_set_image, -1, (void *obj, char *image_buffer, int32_t chn, int32_t size, int32_t eos), (obj, image_buffer, chn, size, eos), "c_int32 c_void_p c_void_p c_int32 c_int32 c_int32") \
  CALL(int32_t, sp_stop_decode, -1, (void *obj), (obj), "c_int32 c_void_p") \
  CALL(void *, sp_init_display_module, NULL, (void), (), "c_void_p") \
  CALL(void, sp_release_display_module, (void)0, (void *obj), (obj), "None c_void_p") \
  CALL(int32_t, sp_start_display, -1, (void *obj, int32_t chn, int32_t width, int32_t height), (obj, chn, width, height), "c_int32 c_void_p c_int32 c_int32 c_int32") \
  CALL(int32_t, sp_stop_display, -1, (void *obj), (obj), "c_int32 c_void_p") \
  CALL(int32_t, sp_display_set_image, -1, (void *obj, char *addr, int32_t size, int32_t chn), (obj, addr, size, chn), "c_int32 c_void_p c_void_p c_int32 c_int32") \
  CALL(int32_t, sp_display_draw_rect, -1, (void *obj, int32_t x0, int32_t y0, int32_t x1, int32_t y1, int32_t chn, int32_t flush, int32_t color, int32_t line_width), (obj, x0, y0, x1, y1, chn, flush, color, line_width), "c_int32 c_void_p c_int32 c_int32 c_int32 c_int32 c_int32 c_int32 c_int32 c_int32") \
  CALL(int32_t, sp_display_draw_string, -1, (void *obj, int32_t x, int32_t y, char *str, int32_t chn, int32_t flush, int32_t color, int32_t line_width), (obj, x, y, str, chn, flush, color, line_width), "c_int32 c_void_p c_int32 c_int32 c_void_p c_int32 c_int32 c_int32 c_int32") \
  CALL(void, sp_get_display_resolution, (void)0, (int32_t *width, int32_t *height), (width, height), "None c_void_p c_void_p") \
  CALL(int32_t, sp_module_bind, -1, (void *src, int32_t src_type, void *dst, int32_t dst_type), (src, src_type, dst, dst_type), "c_int32 c_void_p c_int32 c_void_p c_int32") \
  CALL(int32_t, sp_module_unbind, -1, (void *src, int32_t src_type, void *dst, int32_t dst_type), (src, src_type, dst, dst_type), "c_int32 c_void_p c_int32 c_void_p c_int32")
