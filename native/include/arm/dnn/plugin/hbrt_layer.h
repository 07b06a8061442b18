/**
 * Layers as function pointers: hb_dnn_plugin.h makes them from C++ classes; programs in C fill them in directly.
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
  void *data;            /* NULL for an omitted tensor, and before the model runs */
  uint64_t phyAddr;      /* for a DSP op's parameters */
  int32_t type;          /* hbDNNDataType */
  int32_t numDimensions; /* -1 for an omitted tensor */
  int64_t shape[HB_DNN_TENSOR_MAX_DIMENSIONS]; /* -1 for a data-dependent size */
} hbrtArray;

/** An attribute set by a model's node: exactly one of the four is set. */
typedef struct hbrtAttribute {
  const char *name;
  const char *text; /* NULL for numeric attributes */
  const int64_t *integers;
  const double *reals;
  int32_t integerCount;
  int32_t realCount;
} hbrtAttribute;

/** The functions of a layer type. An int32_t result is 0 on success; on failure, `why` returns the message. */
typedef struct hbrtLayer {
  void *(*create)(void *context);  /* creates a layer; NULL means failure */
  void (*destroy)(void *layer);
  int32_t (*setUp)(void *layer, const hbrtAttribute *attributes, int32_t count); /* NULL: attributes are not read */
  int32_t (*inferShape)(void *layer, const hbrtArray *bottom, int32_t bottomCount, hbrtArray *top,
                        int32_t topCount); /* sets type, numDimensions, shape; NULL: those of the first input */
  int32_t (*forward)(void *layer, const hbrtArray *bottom, int32_t bottomCount, const hbrtArray *top, int32_t topCount,
                     const hbDNNInferCtrlParam *ctrl);
  const char *(*why)(void); /* message of this thread's last failure, or NULL */
} hbrtLayer;

/**
 * Have a layer run the nodes of an op type; `context` is passed to `create`. The structure is copied.
 * Returns 0; HB_DNN_INVALID_ARGUMENT if the type name is invalid, or create, destroy or forward is NULL.
 */
int32_t hbrt_register_layer(const char *layerType, const hbrtLayer *functions, void *context);

/**
 * Let the runtime run an op type again.
 * Returns 0; HB_DNN_INVALID_ARGUMENT if the type name is invalid; HB_DNN_API_USE_ERROR if it has no layer.
 */
int32_t hbDNNUnregisterLayerCreator(const char *layerType);

#ifdef __cplusplus
}
#endif

#endif
