/* An op of hbVP* on an image of standard input: OP FORMAT WIDTH HEIGHT STRIDE FORMAT WIDTH HEIGHT STRIDE [NUMBER ...]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hobot/vp/hb_vp.h"
#include "hobot/vp/hb_vp_cvt_color.h"
#include "hobot/vp/hb_vp_gaussian_blur.h"
#include "hobot/vp/hb_vp_jpeg_codec.h"
#include "hobot/vp/hb_vp_resize.h"
#include "hobot/vp/hb_vp_warp_affine.h"

static hbUCPSysMem fill(hbVPImage *image, char **fields) {
  int format = atoi(fields[0]), width = atoi(fields[1]), height = atoi(fields[2]), stride = atoi(fields[3]);
  int is_nv12 = format == HB_VP_IMAGE_FORMAT_NV12, is_color = format > HB_VP_IMAGE_FORMAT_NV12;
  uint64_t size = (uint64_t)stride * height;
  hbUCPSysMem mem;
  if (hbUCPMallocCached(&mem, is_nv12 ? size * 3 / 2 : size, 0)) exit(1);
  memset(mem.virAddr, 7, mem.memSize);
  memset(image, 0, sizeof *image);
  image->imageFormat = format, image->imageType = is_color ? HB_VP_IMAGE_TYPE_U8C3 : HB_VP_IMAGE_TYPE_U8C1;
  image->width = width, image->height = height, image->stride = stride;
  image->dataVirAddr = mem.virAddr, image->dataPhyAddr = mem.phyAddr;
  if (is_nv12) image->uvVirAddr = (char *)mem.virAddr + size, image->uvPhyAddr = mem.phyAddr + size, image->uvStride = stride;
  return mem;
}

static int32_t make(hbUCPTaskHandle_t *task, hbVPImage *dst, const hbVPImage *src, char **argv, int count) {
  const char *op = argv[1];
  if (!strcmp(op, "resize")) return hbVPResize(task, dst, src, atoi(argv[10]));
  if (!strcmp(op, "cvt")) return hbVPCvtColor(task, dst, src);
  if (!strcmp(op, "blur")) {
    hbVPGaussianBlurParam how = {atoi(argv[10]), HB_VP_BORDER_REPLICATE};
    return hbVPGaussianBlur(task, dst, src, &how);
  }
  hbVPAffineParam how = {.interpolation = HB_VP_INTER_LINEAR, .borderType = HB_VP_BORDER_CONSTANT, .borderValue = 114};
  how.isInverse = atoi(argv[10]);
  for (int at = 11; at < count; at++) how.transformMatrix[at - 11] = (float)atof(argv[at]);
  return hbVPWarpAffine(task, dst, src, &how);
}

static void note(hbUCPTaskHandle_t task, int32_t status, void *ended) { (void)task, *(volatile int *)ended += status == 0; }

int main(int argc, char **argv) {
  hbVPImage src, dst;
  hbUCPSysMem source = fill(&src, argv + 2), result = fill(&dst, argv + 6);
  if (fread(source.virAddr, 1, source.memSize, stdin) != source.memSize) return 1;
  hbUCPMemFlush(&source, HB_SYS_MEM_CACHE_CLEAN);
  hbUCPMemFlush(&result, HB_SYS_MEM_CACHE_CLEAN);
  hbUCPTaskHandle_t task = NULL;
  hbUCPSchedParam how;
  HB_UCP_INITIALIZE_SCHED_PARAM(&how);
  how.backend = HB_UCP_DSP_CORE_1;
  volatile int ended = 0;
  int made = make(&task, &dst, &src, argv, argc);
  int watched = hbUCPSetTaskDoneCb(task, note, (void *)&ended), submitted = hbUCPSubmitTask(task, &how);
  int waited = hbUCPWaitTaskDone(task, 0);
  int released = hbUCPReleaseTask(task);
  for (int tries = 0; !waited && !released && !ended && tries < 10000; tries++) usleep(1000); /* the callback has its own thread */
  hbUCPMemFlush(&result, HB_SYS_MEM_CACHE_INVALIDATE);
  fwrite(result.virAddr, 1, result.memSize, stdout);
  int at_once = make(NULL, &dst, &src, argv, argc); /* the same, without a handle */
  hbUCPTaskHandle_t unread = NULL;
  int again = make(&unread, &dst, &src, argv, argc);
  again |= hbUCPSubmitTask(unread, &how), again |= hbUCPReleaseTask(unread); /* which waits for it */
  hbVPJPEGContext codec = NULL;
  hbVPJPEGEncParam encode;
  HB_VP_INITIALIZE_JPEG_ENC_PARAM(&encode);
  fprintf(stderr, "made %d %d %d, waited %d, released %d, ended %d, at once %d, again %d, none %d %d\n", made, watched,
          submitted, waited, released, ended, at_once, again, hbVPResize(&task, NULL, &src, HB_VP_INTER_LINEAR),
          hbVPCreateJPEGEncContext(&codec, &encode));
  return hbUCPFree(&source) || hbUCPFree(&result);
}
