/* Predict by libspcdev on the input in a file, of the model's own type or a given one; write the first output. */
#include <stdio.h>
#include <stdlib.h>

#include <sp_bpu.h>

int main(int argc, char **argv) {
  static char given[1 << 16];
  hbDNNTensor output;
  FILE *file = fopen(argv[2], "rb");
  if (!file || !fread(given, 1, sizeof given, file) || fclose(file)) return 1;
  bpu_module *model = sp_init_bpu_module(argv[1]);
  if (!model || sp_init_bpu_tensors(model, &output)) return 1;
  model->output_tensor = &output;
  if (argc == 4) model->input_tensor.properties.tensorType = atoi(argv[3]);
  if (sp_bpu_start_predict(model, given)) return 1;
  for (int32_t at = 0; at < output.properties.alignedByteSize; at++) printf("%d ", ((signed char *)output.sysMem[0].virAddr)[at]);
  return sp_deinit_bpu_tensor(&output, 1) || sp_release_bpu_module(model);
}
