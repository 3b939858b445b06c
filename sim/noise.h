// Noise that is a pure function of its coordinates: same (seed, device, channel, index) gives the
// same value in any order, on any thread, in either library. There is no generator state anywhere
// in sim/.
#pragma once

#include <cstdint>

namespace profd::sim {

// The finaliser of splitmix64.
constexpr uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

constexpr uint64_t Hash(uint64_t seed, uint64_t a, uint64_t b = 0, uint64_t c = 0) {
  return Mix(Mix(Mix(Mix(seed) ^ a) ^ b) ^ c);
}

// [0, 1)
constexpr double Unit(uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1p-53; }
// [-1, 1)
constexpr double Signed(uint64_t hash) { return 2 * Unit(hash) - 1; }

// What a hash is for, so that two uses never share their values.
enum NoiseKey : uint64_t {
  kNoiseCurve = 0x100,
  kNoiseLink = 0x200,
  kNoiseClock = 0x300,
  kNoiseSkew = 0x301,
  kNoiseFreq = 0x400,
  kNoiseTemp = 0x500,
  kNoisePower = 0x501,
  kNoisePcie = 0x600,
  kNoiseGarbage = 0x700,
  kNoiseIdentity = 0x800,
  kNoiseBoot = 0x900,
  kNoiseOptics = 0xA00,
};

}  // namespace profd::sim
