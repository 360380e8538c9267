// In: code, and where its operands are. Out: instructions.
//
// The function has one loop, over `unroll` vectors at a time; u is the number of one of them. Its constants
// lie before it, each repeated to a vector. Registers: rdi and rsi are the tables, rdx the bytes, rcx the
// bytes done, rax is free for pointers, and the pointers that are used first stay in the other ones.
#include "compile/machine/emitter.h"

#ifdef TAPEDECK_MACHINE_CODE
#include <xbyak/xbyak.h>
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "compile/machine/lane.h"
#include "compile/machine/registers.h"

namespace tapedeck::compiled {
namespace {

using Xbyak::Address, Xbyak::Opmask, Xbyak::Operand, Xbyak::Reg64, Xbyak::Ymm, Xbyak::Zmm;
using Vector = Xbyak::Xmm;   // or a Ymm or a Zmm, which are derived from it

constexpr int kGroupBytes = kLine;   // of which lengths of several vectors are multiples
constexpr int kPage = 4096;          // the smallest guard of a stack

template <class T, std::size_t lanes>
void large_angles(const T* x, const T* y, T* result, double (*f)(double)) {
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  for (std::size_t lane = 0; lane < lanes; ++lane)
    result[lane] =
        std::bit_cast<T>(lane_result<T>(LaneOp::large_angle, reinterpret_cast<std::uintptr_t>(f),
                                        std::bit_cast<U>(x[lane]), std::bit_cast<U>(y[lane]), U(0)));
}

// No instruction takes more.
constexpr std::size_t kLongestInstruction = 15;
std::size_t most_bytes(const Code& code) {
  // A node takes up to twelve instructions, or a call up to 128, for each vector of the loop and of up to two
  // that are left; or it is a constant.
  const auto calls = static_cast<std::size_t>(std::count_if(
      code.nodes.begin(), code.nodes.end(), [](const CodeNode& n) { return n.op == LaneOp::large_angle; }));
  const auto vectors = static_cast<std::size_t>(code.most_vectors) + 2;
  return 4096 + (code.nodes.size() * 12 + calls * 128) * vectors * kLongestInstruction +
         code.nodes.size() * kGroupBytes;
}

class Emitter : Xbyak::CodeGenerator {
 public:
  Emitter(const Code& code, const CodePlaces& places, const VectorSet& set, std::byte* memory,
          std::size_t size)
      : CodeGenerator(size, memory),
        code_(code),
        places_(places),
        set_(set),
        plan_(plan_registers(code, set)),
        wide_(code.lane_bytes == 8),
        is_avx512_(set.registers == 32),
        constant_(code.nodes.size(), 0) {
    write_constants();
    choose_pointers();
    entry_ = getSize();
    write_function();
  }
  std::size_t entry() const { return entry_; }
  std::size_t bytes() const { return getSize(); }

 private:
  const CodeNode& node(LaneValue v) const { return code_.nodes[v]; }

  void write_constants() {
    L(constants_);
    int at = 0;
    for (LaneValue v = 0; v < code_.nodes.size(); ++v) {
      if (node(v).op != LaneOp::constant) continue;
      constant_[v] = at;
      at += set_.bytes;
      for (int lane = 0; lane < set_.bytes; lane += code_.lane_bytes)
        wide_ ? dq(node(v).imm) : dd(static_cast<std::uint32_t>(node(v).imm));
    }
    align(kGroupBytes);
  }

  // Pointers: of a stream, a result, or the singles.
  struct Pointer {
    Reg64 table;
    std::uint32_t entry;
    bool operator==(const Pointer& o) const { return table == o.table && entry == o.entry; }
  };
  Pointer pointer_of(const CodeNode& n) const {
    if (n.op == LaneOp::store) return {rsi, places_.results[n.imm]};
    if (n.op == LaneOp::stream) return {rdi, places_.streams[n.imm]};
    return {rdi, places_.first_single};
  }
  void choose_pointers() {
    for (const CodeNode& n : code_.nodes) {
      if (n.op != LaneOp::store && n.op != LaneOp::stream && n.op != LaneOp::single) continue;
      const Pointer p = pointer_of(n);
      if (pointers_.size() < std::size(kPointerRegisters) && !register_of(p)) pointers_.push_back(p);
    }
  }
  std::optional<Reg64> register_of(const Pointer& p) const {
    for (std::size_t i = 0; i < pointers_.size(); ++i)
      if (pointers_[i] == p) return Reg64(kPointerRegisters[i]);
    return {};
  }
  /// Memory `bytes` after an address.
  static Address after(const Xbyak::RegExp& address, int bytes) {
    return Xbyak::util::ptr[address + static_cast<std::size_t>(bytes)];
  }
  static Address entry_of(const Pointer& p) { return after(p.table, static_cast<int>(8 * p.entry)); }
  // The pointer of a node, in its register or loaded into rax.
  Reg64 base(const CodeNode& n) {
    const Pointer p = pointer_of(n);
    if (const auto known = register_of(p)) return *known;
    mov(rax, entry_of(p));
    return rax;
  }

  void write_function() {
    const Reg64 saved[] = {rbx, r12, r13, r14, r15};
    push(rbp);
    mov(rbp, rsp);
    for (const Reg64& r : saved)
      push(r);
    if (const int frame = frame_bytes()) {
      // Reads each page, so that none beyond the end of the stack is written.
      for (int page = kPage; page < frame + set_.bytes; page += kPage)
        mov(eax, after(rsp, -page));
      sub(rsp, static_cast<std::uint32_t>(frame));
      and_(rsp, static_cast<std::uint32_t>(-set_.bytes));
    }
    for (std::size_t i = 0; i < pointers_.size(); ++i)
      mov(Reg64(kPointerRegisters[i]), entry_of(pointers_[i]));
    for (LaneValue v = 0; v < code_.nodes.size(); ++v)
      if (plan_.pinned[v] >= 0) vmovups(vector(plan_.pinned[v]), memory(v, 0));
    xor_(ecx, ecx);

    Xbyak::Label loop, rest, done;
    const int step = plan_.unroll * set_.bytes;
    if (step > kGroupBytes) {   // less may be left
      lea(rax, after(rcx, step));
      cmp(rax, rdx);
      ja(rest, T_NEAR);
    }
    align(kGroupBytes);
    L(loop);
    write_body(plan_.unroll);
    add(rcx, static_cast<std::uint32_t>(step));
    if (step > kGroupBytes) {
      lea(rax, after(rcx, step));
      cmp(rax, rdx);
      jbe(loop, T_NEAR);
      L(rest);
      cmp(rcx, rdx);
      jae(done, T_NEAR);
      write_body(kGroupBytes / set_.bytes);
      add(rcx, static_cast<std::uint32_t>(kGroupBytes));
      jmp(rest, T_NEAR);
    } else {
      cmp(rcx, rdx);
      jb(loop, T_NEAR);
    }
    L(done);
    lea(rsp, after(rbp, -static_cast<int>(8 * std::size(saved))));
    for (auto r = std::rbegin(saved); r != std::rend(saved); ++r)
      pop(*r);
    pop(rbp);
    vzeroupper();
    ret();
    write_rare_code();
  }

  // The stack: values, then what a call saves, which is all vector registers, its result, and pointers.
  int saved_registers() const { return plan_.slots * plan_.unroll * set_.bytes; }
  int result_of_call() const { return saved_registers() + set_.registers * set_.bytes; }
  int saved_pointers() const { return result_of_call() + set_.bytes; }
  int frame_bytes() const {
    const bool calls = std::any_of(code_.nodes.begin(), code_.nodes.end(),
                                   [](const CodeNode& n) { return n.op == LaneOp::large_angle; });
    return calls ? saved_pointers() + 9 * 8 : saved_registers();
  }

  // Rare code stands after the function, once for each vector that may need it.
  struct RareCode {
    LaneValue choice;
    int u;
    Xbyak::Label begin, back;
  };
  void write_body(int unroll) {
    for (const LaneValue v : plan_.order) {
      if (node(v).region) continue;
      for (int u = 0; u < unroll; ++u)
        node(v).op == LaneOp::rarely ? choose_rarely(v, u) : write(v, u);
    }
  }
  void choose_rarely(LaneValue v, int u) {
    const CodeNode& n = node(v);
    RareCode& rare = *rare_.emplace_back(std::make_unique<RareCode>(RareCode{v, u, {}, {}}));
    const Vector& mask = in_register(n.x[2], u, kSpare);
    if (is_avx512_) {
      vptestmd(kMask, mask, mask);
      kortestw(kMask, kMask);
    } else {
      vptest(mask, mask);
    }
    jnz(rare.begin, T_NEAR);
    copy(n.x[0], v, u);
    L(rare.back);
  }
  void write_rare_code() {
    for (const auto& rare : rare_) {
      const CodeNode& n = node(rare->choice);
      L(rare->begin);
      for (const LaneValue v : plan_.order)
        if (node(v).region == n.imm) write(v, rare->u);
      copy(n.x[1], rare->choice, rare->u);
      jmp(rare->back, T_NEAR);
    }
  }

  // Where values are.

  const Vector& vector(int number) const { return vectors_[static_cast<std::size_t>(number)]; }
  static std::array<Vector, 32> all_vectors(int bytes) {
    std::array<Vector, 32> all;
    for (int i = 0; i < 32; ++i)
      all[static_cast<std::size_t>(i)] = bytes == 64   ? Vector(Zmm(i))
                                         : bytes == 32 ? Vector(Ymm(i))
                                                       : Vector(i);
    return all;
  }
  bool has_register(LaneValue v) const { return plan_.first_register[v] >= 0 || plan_.pinned[v] >= 0; }
  const Vector& register_of(LaneValue v, int u) const {
    return vector(plan_.pinned[v] >= 0 ? plan_.pinned[v] : plan_.first_register[v] + u);
  }
  bool is_in(LaneValue v, int u, const Vector& r) const {
    return has_register(v) && register_of(v, u).getIdx() == r.getIdx();
  }
  /// The memory of a value without a register. Loads rax if need be, so it is used at once.
  Address memory(LaneValue v, int u) {
    const CodeNode& n = node(v);
    switch (n.op) {
      case LaneOp::constant:
        return ptr[rip + constants_ + constant_[v]];
      case LaneOp::single:
        return after(base(n), static_cast<int>(n.imm) * kGroupBytes);
      case LaneOp::stream:
        return after(base(n) + rcx, u * set_.bytes);
      default:
        return after(rsp, (plan_.slot[v] * plan_.unroll + u) * set_.bytes);
    }
  }
  /// Calls f with the value as an operand: its register, or its memory.
  template <class F> void with_operand(LaneValue v, int u, const F& f) {
    if (has_register(v)) {
      f(static_cast<const Operand&>(register_of(v, u)));
    } else {
      const Address a = memory(v, u);
      f(static_cast<const Operand&>(a));
    }
  }
  /// The register of the value; if it has none, `other`, into which it is loaded.
  const Vector& in_register(LaneValue v, int u, const Vector& other) {
    if (has_register(v)) return register_of(v, u);
    vmovups(other, memory(v, u));
    return other;
  }
  void load(const Vector& to, LaneValue v, int u) {
    if (!is_in(v, u, to)) with_operand(v, u, [&](const Operand& x) { vmovups(to, x); });
  }
  void copy(LaneValue from, LaneValue to, int u) {
    const Vector& y = result(to, u);
    load(y, from, u);
    store_result(to, u, y);
  }
  /// Where the result is computed: its register, or one from which it is stored on the stack.
  const Vector& result(LaneValue v, int u) const { return has_register(v) ? register_of(v, u) : kResult; }
  void store_result(LaneValue v, int u, const Vector& y) {
    if (!has_register(v)) vmovaps(memory(v, u), y);
  }

  // Operations.

  /// y = f(a, b) for an instruction whose second operand may be memory.
  template <class F> void binary(LaneValue v, int u, LaneValue a, LaneValue b, const F& f) {
    const Vector& y = result(v, u);
    const Vector& x = in_register(a, u, is_in(b, u, y) ? kSpare : y);
    with_operand(b, u, [&](const Operand& o) { f(y, x, o); });
    store_result(v, u, y);
  }
  /// The same for an operation that commutes.
  template <class F> void commutative(LaneValue v, int u, LaneValue a, LaneValue b, const F& f) {
    if (!has_register(a) && has_register(b)) std::swap(a, b);
    binary(v, u, a, b, f);
  }
  template <class F> void unary(LaneValue v, int u, LaneValue a, const F& f) {
    const Vector& y = result(v, u);
    with_operand(a, u, [&](const Operand& o) { f(y, o); });
    store_result(v, u, y);
  }
  /// The same for an instruction whose operand may not be memory.
  template <class F> void shift(LaneValue v, int u, const F& f) {
    const Vector& y = result(v, u);
    f(y, in_register(node(v).x[0], u, y));
    store_result(v, u, y);
  }

  /// y = the mask f(a, b). AVX-512 has it in a register of bits first.
  template <class F> void test(LaneValue v, int u, LaneValue a, LaneValue b, const F& f) {
    if (!is_avx512_) return binary(v, u, a, b, f);
    const Vector& x = in_register(a, u, kSpare);
    const Vector& y = result(v, u);
    with_operand(b, u, [&](const Operand& o) { f(kMask, x, o); });
    wide_ ? vpmovm2q(y, kMask) : vpmovm2d(y, kMask);
    store_result(v, u, y);
  }

  void write(LaneValue v, int u) {
    const CodeNode& n = node(v);
    LaneValue a = n.x[0], b = n.x[1];
    const auto imm = static_cast<std::uint8_t>(n.imm);
    using Y = const Vector&;
    using O = const Operand&;
    switch (n.op) {
      case LaneOp::stream:
        if (has_register(v)) vmovups(register_of(v, u), after(base(n) + rcx, u * set_.bytes));
        return;
      case LaneOp::store: {
        const Vector& x = in_register(a, u, kResult);
        vmovups(after(base(n) + rcx, u * set_.bytes), x);
        return;
      }
      case LaneOp::add:
        return commutative(v, u, a, b, [&](Y y, Y x, O o) { wide_ ? vaddpd(y, x, o) : vaddps(y, x, o); });
      case LaneOp::sub:
        return binary(v, u, a, b, [&](Y y, Y x, O o) { wide_ ? vsubpd(y, x, o) : vsubps(y, x, o); });
      case LaneOp::mul:
        return commutative(v, u, a, b, [&](Y y, Y x, O o) { wide_ ? vmulpd(y, x, o) : vmulps(y, x, o); });
      case LaneOp::div:
        return binary(v, u, a, b, [&](Y y, Y x, O o) { wide_ ? vdivpd(y, x, o) : vdivps(y, x, o); });
      case LaneOp::min:
        return binary(v, u, a, b, [&](Y y, Y x, O o) { wide_ ? vminpd(y, x, o) : vminps(y, x, o); });
      case LaneOp::max:
        return binary(v, u, a, b, [&](Y y, Y x, O o) { wide_ ? vmaxpd(y, x, o) : vmaxps(y, x, o); });
      case LaneOp::fma:
        return multiply_add(v, u);
      case LaneOp::sqrt:
        return unary(v, u, a, [&](Y y, O o) { wide_ ? vsqrtpd(y, o) : vsqrtps(y, o); });
      case LaneOp::round:
        return unary(v, u, a, [&](Y y, O o) { round(y, o, imm | 8); });   // 8: without exceptions
      case LaneOp::bit_and:
        return commutative(v, u, a, b, [&](Y y, Y x, O o) { vandps(y, x, o); });
      case LaneOp::bit_or:
        return commutative(v, u, a, b, [&](Y y, Y x, O o) { vorps(y, x, o); });
      case LaneOp::bit_xor:
        return commutative(v, u, a, b, [&](Y y, Y x, O o) { vxorps(y, x, o); });
      case LaneOp::int_add:
        return commutative(v, u, a, b, [&](Y y, Y x, O o) { wide_ ? vpaddq(y, x, o) : vpaddd(y, x, o); });
      case LaneOp::int_sub:
        return binary(v, u, a, b, [&](Y y, Y x, O o) { wide_ ? vpsubq(y, x, o) : vpsubd(y, x, o); });
      case LaneOp::shift_left:
        return shift(v, u, [&](Y y, Y x) { wide_ ? vpsllq(y, x, imm) : vpslld(y, x, imm); });
      case LaneOp::shift_right:
        return shift(v, u, [&](Y y, Y x) { wide_ ? vpsrlq(y, x, imm) : vpsrld(y, x, imm); });
      case LaneOp::compare:
        return test(v, u, a, b,
                    [&](const auto& y, Y x, O o) { wide_ ? vcmppd(y, x, o, imm) : vcmpps(y, x, o, imm); });
      case LaneOp::int_equal:
        if (!has_register(a) && has_register(b)) std::swap(a, b);
        return test(v, u, a, b,
                    [&](const auto& y, Y x, O o) { wide_ ? vpcmpeqq(y, x, o) : vpcmpeqd(y, x, o); });
      case LaneOp::int_greater:
        return test(v, u, a, b,
                    [&](const auto& y, Y x, O o) { wide_ ? vpcmpgtq(y, x, o) : vpcmpgtd(y, x, o); });
      case LaneOp::select:
        return is_avx512_ ? select_bits(v, u) : select(v, u);
      case LaneOp::large_angle:
        return call(v, u);
      case LaneOp::constant:
      case LaneOp::single:
      case LaneOp::rarely:
        return;   // nothing to compute
    }
  }

  void round(const Vector& y, const Operand& x, std::uint8_t how) {
    if (is_avx512_)
      wide_ ? vrndscalepd(y, x, how) : vrndscaleps(y, x, how);
    else
      wide_ ? vroundpd(y, x, how) : vroundps(y, x, how);
  }

  void select(LaneValue v, int u) {
    const auto [yes, no, mask] = node(v).x;
    const Vector& y = result(v, u);
    const Vector &other = in_register(no, u, is_in(yes, u, y) || is_in(mask, u, y) ? kResult : y),
                 m = in_register(mask, u, kSpare);
    with_operand(yes, u,
                 [&](const Operand& o) { wide_ ? vblendvpd(y, other, o, m) : vblendvps(y, other, o, m); });
    store_result(v, u, y);
  }

  // vpternlog computes any function of three bits, given by a table, and overwrites the first of them.
  void select_bits(LaneValue v, int u) {
    const auto [yes, no, mask] = node(v).x;
    const Vector& y = result(v, u);
    const auto choose = [&](LaneValue second, LaneValue third, std::uint8_t table) {
      const Vector& x = in_register(second, u, kSpare);
      with_operand(third, u, [&](const Operand& o) { vpternlogd(y, x, o, table); });
    };
    if (is_in(yes, u, y)) {
      choose(mask, no, 0b11100010);
    } else if (is_in(no, u, y)) {
      choose(mask, yes, 0b10111000);
    } else {
      load(y, mask, u);
      choose(yes, no, 0b11001010);
    }
    store_result(v, u, y);
  }

  // The instruction overwrites one of its operands: if y is that of none, the sum's second term is copied.
  void multiply_add(LaneValue v, int u) {
    LaneValue a = node(v).x[0], b = node(v).x[1];
    const LaneValue c = node(v).x[2];
    const Vector& y = result(v, u);
    if (is_in(b, u, y)) std::swap(a, b);
    if (is_in(a, u, y) && !is_in(c, u, y)) {
      if (!has_register(b) && has_register(c)) {   // y = y·b + c
        const Vector& z = register_of(c, u);
        with_operand(b, u, [&](const Operand& o) { wide_ ? vfmadd132pd(y, z, o) : vfmadd132ps(y, z, o); });
      } else {
        const Vector& x = in_register(b, u, kSpare);
        with_operand(c, u, [&](const Operand& o) { wide_ ? vfmadd213pd(y, x, o) : vfmadd213ps(y, x, o); });
      }
    } else {
      load(y, c, u);
      if (!has_register(a) && has_register(b)) std::swap(a, b);
      const Vector& x = in_register(a, u, kSpare);
      with_operand(b, u, [&](const Operand& o) { wide_ ? vfmadd231pd(y, x, o) : vfmadd231ps(y, x, o); });
    }
    store_result(v, u, y);
  }

  // Calls large_angles. A callee may change these registers, and all of vectors.
  void call(LaneValue v, int u) {
    const CodeNode& n = node(v);
    const Reg64 saved[] = {rdi, rsi, rdx, rcx, r8, r9, r10, r11};
    for (int i = 0; i < set_.registers; ++i)
      vmovups(after(rsp, saved_registers() + i * set_.bytes), vector(i));
    for (int i = 0; i < 8; ++i)
      mov(after(rsp, saved_pointers() + 8 * i), saved[i]);
    const int first_argument = saved_pointers() + 8 * 8;
    load_address(n.x[0], u);
    mov(after(rsp, first_argument), rax);
    load_address(n.x[1], u);
    mov(rsi, rax);
    mov(rdi, after(rsp, first_argument));
    lea(rdx, after(rsp, result_of_call()));
    mov(rcx, n.imm);
    mov(rax, set_.bytes == 64   ? address_of_large_angles<64>()
             : set_.bytes == 32 ? address_of_large_angles<32>()
                                : address_of_large_angles<16>());
    vzeroupper();
    CodeGenerator::call(rax);
    for (int i = 0; i < 8; ++i)
      mov(saved[i], after(rsp, saved_pointers() + 8 * i));
    for (int i = 0; i < set_.registers; ++i)
      vmovups(vector(i), after(rsp, saved_registers() + i * set_.bytes));
    const Vector& y = result(v, u);
    vmovups(y, after(rsp, result_of_call()));
    store_result(v, u, y);
  }
  template <std::size_t bytes> std::uintptr_t address_of_large_angles() const {
    return wide_ ? reinterpret_cast<std::uintptr_t>(large_angles<double, bytes / 8>)
                 : reinterpret_cast<std::uintptr_t>(large_angles<float, bytes / 4>);
  }
  // Sets rax to the address of a value, whose register has just been saved.
  void load_address(LaneValue v, int u) {
    if (has_register(v))
      lea(rax, after(rsp, saved_registers() + register_of(v, u).getIdx() * set_.bytes));
    else
      lea(rax, memory(v, u));
  }

  static constexpr int kPointerRegisters[] = {Operand::R8,  Operand::R9,  Operand::R10,
                                              Operand::R11, Operand::RBX, Operand::R12,
                                              Operand::R13, Operand::R14, Operand::R15};

  const Code& code_;
  const CodePlaces& places_;
  const VectorSet set_;
  const RegisterPlan plan_;
  const bool wide_, is_avx512_;   // lanes of 8 bytes; AVX-512
  const std::array<Vector, 32> vectors_ = all_vectors(set_.bytes);
  /// Registers of no value: for a result that is kept on the stack, for one operand from memory, and for a
  /// mask of bits.
  const Vector kResult = vector(set_.registers - 2), kSpare = vector(set_.registers - 1);
  const Opmask kMask{1};
  std::vector<int> constant_;   // by value: where the constant is, in bytes
  Xbyak::Label constants_;
  std::vector<Pointer> pointers_;   // in registers
  std::vector<std::unique_ptr<RareCode>> rare_;
  std::size_t entry_ = 0;
};

}   // namespace

EmittedCode emit(const Code& code, const CodePlaces& places, const VectorSet& set) {
  const std::size_t size = most_bytes(code);
  EmittedCode emitted{std::make_unique_for_overwrite<std::byte[]>(size + kGroupBytes), {}, 0};
  // As executable memory, since Xbyak aligns addresses.
  std::byte* const first =
      emitted.memory.get() + (-reinterpret_cast<std::uintptr_t>(emitted.memory.get()) & (kGroupBytes - 1));
  const Emitter emitter(code, places, set, first, size);
  emitted.bytes = {first, emitter.bytes()};
  emitted.entry = emitter.entry();
  return emitted;
}

}   // namespace tapedeck::compiled
#endif
