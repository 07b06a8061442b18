/* A camera into a scaler, an encoder of MJPEG, a decoder and a display, by libspcdev's names; then a model of digits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sp_bpu.h>
#include <sp_codec.h>
#include <sp_display.h>
#include <sp_sys.h>
#include <sp_vio.h>

#define CHECK(what)                                   \
  do {                                                \
    if (!(what)) {                                    \
      printf("line %d: %s\n", __LINE__, #what);       \
      return 1;                                       \
    }                                                 \
  } while (0)

enum { WIDTH = 64, HEIGHT = 48, TURNED_WIDTH = 24, TURNED_HEIGHT = 32, LARGE_WIDTH = 128, LARGE_HEIGHT = 96 };

static int moved(void) {
  char frame[FRAME_BUFFER_SIZE(WIDTH, HEIGHT)], turned[FRAME_BUFFER_SIZE(TURNED_WIDTH, TURNED_HEIGHT)], *stream = malloc(1 << 20);
  char larger[FRAME_BUFFER_SIZE(LARGE_WIDTH, LARGE_HEIGHT)];
  int32_t widths[] = {32, WIDTH}, heights[] = {24, HEIGHT}, width = TURNED_WIDTH, height = TURNED_HEIGHT;
  int32_t at = 0, crop_width = 32, crop_height = 24, turn = 90, right = 96, low = 72, size;
  sp_sensors_parameters sensor = {.raw_height = HEIGHT, .raw_width = WIDTH, .fps = 1000};
  void *camera = sp_init_vio_module(), *scaler = sp_init_vio_module(), *turning = sp_init_vio_module(), *large = sp_init_vio_module();
  void *encoder = sp_init_encoder_module(), *decoder = sp_init_decoder_module(), *display = sp_init_display_module();
  CHECK(stream && camera && display && camera != scaler);
  CHECK(sp_vio_get_frame(camera, frame, WIDTH, HEIGHT, 2000) == -1);
  CHECK(sp_open_camera_v2(camera, 0, SP_HOST_AUTO_DETECT, 2, &sensor, widths, heights) == 0);
  CHECK(sp_vio_get_frame(camera, frame, WIDTH, HEIGHT, 2000) == 0 && (unsigned char)frame[0] == 82); /* red, BT.601 */
  CHECK(sp_vio_get_frame(camera, frame, 100, 100, 2000) == -1);
  memset(frame, 0, sizeof frame);
  CHECK(sp_vio_get_yuv(camera, frame, 0, 0, 2000) == 0 && frame[0]);
  CHECK(sp_vio_get_raw(camera, frame, 0, 0, 2000) == -1);
  CHECK(sp_open_vps(scaler, 1, 1, SP_VPS_SCALE_ROTATE_CROP, WIDTH, HEIGHT, &width, &height, &at, &at, &crop_width, &crop_height, &turn) == 0);
  CHECK(sp_vio_set_frame(scaler, frame, sizeof frame) == 0 && sp_vio_set_frame(scaler, frame, 7) == -1);
  CHECK(sp_vio_get_frame(scaler, turned, width, height, 2000) == 0);
  CHECK(sp_open_camera_v3(turning, 0, 0, 1, &sensor, &width, &height, &at, &at, &crop_width, &crop_height, &turn) == 0);
  CHECK(sp_vio_get_frame(turning, turned, width, height, 2000) == 0);
  sensor.raw_width = LARGE_WIDTH, sensor.raw_height = LARGE_HEIGHT;
  CHECK(sp_open_camera_v3(large, 0, 0, 1, &sensor, &width, &height, &right, &low, &crop_width, &crop_height, NULL) == 0);
  CHECK(sp_vio_get_frame(large, turned, width, height, 2000) == 0 && (unsigned char)turned[0] == 82);
  CHECK(sp_vio_get_frame(large, larger, LARGE_WIDTH, LARGE_HEIGHT, 2000) == 0);
  CHECK(sp_start_encode(encoder, 0, SP_ENCODER_MJPEG, width, height, 8000) == 0);
  CHECK(sp_module_bind(scaler, SP_MTYPE_VIO, encoder, SP_MTYPE_ENCODER) == 0);
  size = sp_encoder_get_stream(encoder, stream);
  CHECK(size > 100 && sp_module_unbind(scaler, SP_MTYPE_VIO, encoder, SP_MTYPE_ENCODER) == 0);
  CHECK(sp_encoder_get_stream(encoder, stream) == -1);
  CHECK(sp_encoder_set_frame(encoder, turned, sizeof turned) == 0 && sp_encoder_get_stream(encoder, stream) > 100);
  CHECK(sp_start_decode(decoder, "", 0, SP_ENCODER_MJPEG, width, height) == 0);
  CHECK(sp_decoder_set_image(decoder, stream, 0, size, 0) == 0 && sp_decoder_get_image(decoder, turned) == 0);
  CHECK(sp_start_decode(decoder, "none.h264", 0, SP_ENCODER_MJPEG, width, height) == -1);
  sp_get_display_resolution(&widths[0], &heights[0]);
  CHECK(widths[0] == 1920 && heights[0] == 1080 && sp_start_display(display, 1, WIDTH, HEIGHT) == 0);
  CHECK(sp_display_draw_rect(display, 8, 8, 40, 40, 2, 1, (int32_t)0xff00ff00, 2) == 0);
  CHECK(sp_display_draw_string(display, 1, 30, stream + (1 << 20) - 1, 3, 0, -1, 1) == 0);
  CHECK(sp_display_set_image(display, frame, sizeof frame, 1) == 0);
  CHECK(sp_module_bind(camera, SP_MTYPE_VIO, display, SP_MTYPE_DISPLAY) == 0);
  CHECK(sp_module_bind(encoder, SP_MTYPE_ENCODER, camera, SP_MTYPE_VIO) == -1);
  CHECK(sp_stop_display(display) == 0 && sp_stop_decode(decoder) == 0 && sp_stop_encode(encoder) == 0 && sp_vio_close(camera) == 0);
  sp_release_display_module(display);
  CHECK(sp_start_display(display, 1, WIDTH, HEIGHT) == -1 && sp_start_display(scaler, 1, WIDTH, HEIGHT) == -1);
  free(stream);
  return 0;
}

int main(int argc, char **argv) {
  hbDNNTensor output;
  char digit[8 * 8];
  CHECK(argc == 3 && moved() == 0);
  FILE *file = fopen(argv[2], "rb");
  CHECK(file && fread(digit, 1, sizeof digit, file) == sizeof digit && !fclose(file));
  CHECK(sp_init_bpu_module("none.bin") == NULL);
  bpu_module *model = sp_init_bpu_module(argv[1]);
  CHECK(model && sp_bpu_start_predict(model, digit) == -1 && sp_init_bpu_tensors(model, &output) == 0);
  model->output_tensor = &output;
  CHECK(sp_bpu_start_predict(model, digit) == 0);
  for (int at = 0; at < 10; at++) printf("%.9g\n", ((float *)output.sysMem[0].virAddr)[at]);
  CHECK(sp_deinit_bpu_tensor(&output, 1) == 0 && sp_release_bpu_module(model) == 0);
  return 0;
}
