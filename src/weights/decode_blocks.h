// One decoder per block format: p points at one block, out receives its weights in order.
#pragma once

#include <cstdint>

namespace sluice {

void decode_q4_0(const uint8_t* p, float* out);
void decode_q4_1(const uint8_t* p, float* out);
void decode_q5_0(const uint8_t* p, float* out);
void decode_q5_1(const uint8_t* p, float* out);
void decode_q8_0(const uint8_t* p, float* out);
void decode_q2_k(const uint8_t* p, float* out);
void decode_q3_k(const uint8_t* p, float* out);
void decode_q4_k(const uint8_t* p, float* out);
void decode_q5_k(const uint8_t* p, float* out);
void decode_q6_k(const uint8_t* p, float* out);
void decode_q8_k(const uint8_t* p, float* out);
void decode_tq1_0(const uint8_t* p, float* out);
void decode_tq2_0(const uint8_t* p, float* out);
void decode_mxfp4(const uint8_t* p, float* out);
void decode_nvfp4(const uint8_t* p, float* out);

void decode_iq2_xxs(const uint8_t* p, float* out);
void decode_iq2_xs(const uint8_t* p, float* out);
void decode_iq2_s(const uint8_t* p, float* out);
void decode_iq3_xxs(const uint8_t* p, float* out);
void decode_iq3_s(const uint8_t* p, float* out);
void decode_iq1_s(const uint8_t* p, float* out);
void decode_iq1_m(const uint8_t* p, float* out);
void decode_iq4_nl(const uint8_t* p, float* out);
void decode_iq4_xs(const uint8_t* p, float* out);

}  // namespace sluice
