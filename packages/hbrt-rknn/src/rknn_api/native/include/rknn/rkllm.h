/** RKLLM, the run time of Rockchip's language models: not offered, and a program that includes this learns it here. */
#ifndef HBRT_RKLLM_H
#define HBRT_RKLLM_H

#error "hbrt does not offer RKLLM: the format of .rkllm files is not public. Models of rknn_api.h run here."

#endif
