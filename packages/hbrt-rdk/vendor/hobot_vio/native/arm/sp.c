/** libspcdev.so: cameras, codecs and displays. */
#include "sp_codec.h"
#include "sp_display.h"
#include "sp_sys.h"
#include "sp_vio.h"

#include "entry.h"
#include "sp_calls.h"

HBRT_SP_CALLS(HBRT_FUNCTION)
