/* Intrinsics of the matrix unit: none, since no public compiler has its instructions. A program that includes this and
 * calls none builds; a call is an error of the compiler. */
#ifndef HBRT_HEXAGON_HMX_PROTOS_H
#define HBRT_HEXAGON_HMX_PROTOS_H
#endif
