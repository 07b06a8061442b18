/**
 * Layers by function pointers: what hb_dnn_plugin.h makes of C++ classes, and what a program in C fills itself.
 *
 * Emulator: all of it. The manual's layers are C++ objects.
 */
#ifndef HBRT_DNN_PLUGIN_HBRT_LAYER_H
#define HBRT_DNN_PLUGIN_HBRT_LAYER_H

#include <stdint.h>

#include "../hb_dnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A tensor that a layer reads or writes, in C order. */
typedef struct hbrtArray {
  void *data;            /* NULL for a missing tensor, and before the model runs */
  uint64_t phyAddr;      /* for a DSP op's parameters */
  int32_t type;          /* hbDNNDataType */
  int32_t numDimensions; /* -1 for a missing tensor */
  int64_t shape[HB_DNN_TENSOR_MAX_DIMENSIONS]; /* -1 for a data-dependent size */
} hbrtArray;

/** An attribute that a model's node sets: exactly one of the four is set. */
typedef struct hbrtAttribute {
  const char *name;
  const char *text; /* NULL for one of numbers */
  const int64_t *integers;
  const double *reals;
  int32_t integerCount;
  int32_t realCount;
} hbrtAttribute;

/** The functions of a layer type. An int32_t result is 0, or a failure with the text of `why`. */
typedef struct hbrtLayer {
  void *(*create)(void *context);  /* one layer; NULL fails */
  void (*destroy)(void *layer);
  int32_t (*setUp)(void *layer, const hbrtAttribute *attributes, int32_t count); /* NULL: no attributes are read */
  int32_t (*inferShape)(void *layer, const hbrtArray *bottom, int32_t bottomCount, hbrtArray *top,
                        int32_t topCount); /* fills type, numDimensions, shape; NULL: those of the first input */
  int32_t (*forward)(void *layer, const hbrtArray *bottom, int32_t bottomCount, const hbrtArray *top, int32_t topCount,
                     const hbDNNInferCtrlParam *ctrl);
  const char *(*why)(void); /* text of this thread's last failure, or NULL */
} hbrtLayer;

/**
 * Have a layer run the nodes of an op type; `context` goes to `create`. The structure is copied.
 * Returns 0; HB_DNN_INVALID_ARGUMENT when the type is no name, or create, destroy or forward is NULL.
 */
int32_t hbrt_register_layer(const char *layerType, const hbrtLayer *functions, void *context);

/**
 * Give an op type back to the runtime.
 * Returns 0; HB_DNN_INVALID_ARGUMENT when the type is no name; HB_DNN_API_USE_ERROR when it has no layer.
 */
int32_t hbDNNUnregisterLayerCreator(const char *layerType);

#ifdef __cplusplus
}
#endif

#endif
