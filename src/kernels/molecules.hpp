// Molecules as RDKit writes them in binary (Mol.ToBinary, version 16): atoms, bonds and rings become
// the arrays of a batch. Whatever is not understood for certain makes a molecule unreadable here,
// and somebody else reads it.
#pragma once

#include "views.hpp"

namespace fdgnn {

constexpr u32 RDKIT_MARK = 0xDEADBEEF;
constexpr i32 RDKIT_VERSION = 16;         // of the format, not of RDKit
constexpr i64 MAX_SMALL_MOLECULE = 255;   // atoms; more of them are numbered by longer integers

struct MoleculeBytes {
    Span<const std::uint8_t> bytes;
    i64 i = 0;
    bool good = true;

    std::uint8_t byte() {
        if (i < bytes.size) return bytes[i++];
        good = false;
        return 0;
    }
    i32 number() {
        u32 found = 0;
        for (int shift = 0; shift < 32; shift += 8) found |= static_cast<u32>(byte()) << shift;
        return static_cast<i32>(found);
    }
    void expect(bool right) { good = good && right; }
};

// What is kept of an atom, as one number: the element, neighbors, hydrogens, charge + 128 and
// hybridization have eight bits each, from the lowest on; then two bits, aromatic and in a ring.
struct AtomCode {
    static constexpr int degree = 8, hydrogens = 16, charge = 24, hybridization = 32, aromatic = 40,
                         ring = 41;
};

struct UnpackedMolecules {
    std::vector<i64> n_atoms;     // of each molecule; -1: it cannot be read here
    std::vector<u64> atoms;       // codes
    std::vector<i64> degrees;     // of each atom
    std::vector<i32> neighbors;   // of each atom, ascending, as numbers inside the molecule
    std::vector<std::uint8_t> bonds;  // types of bonds, as RDKit numbers them, beside the neighbors
};

struct Bond {
    i32 begin, end;
    std::uint8_t type;
};

inline u64 read_atom(MoleculeBytes& in) {
    constexpr u64 SP3 = 4;
    u64 element = in.byte();
    const auto flags = in.byte();
    in.expect((flags & 0x90) == 0 && (flags & 0x02) == 0);  // coordinates, queries, parts of proteins
    const i32 has = in.number();
    in.expect((has & ~0x1FE) == 0);
    const auto charge = has & 2 ? static_cast<signed char>(in.byte()) : 0;
    if (has & 4) in.byte();  // chirality
    const u64 hybridization = has & 8 ? in.byte() : SP3;
    u64 hydrogens = has & 16 ? in.byte() : 0;
    if (has & 32) in.byte();  // valence of explicit bonds
    const u64 implicit = has & 64 ? in.byte() : 0;
    if (!(flags & 0x20)) hydrogens += implicit;
    if (has & 128) in.byte();    // radical electrons
    if (has & 256) in.number();  // isotope
    if (flags & 0x08) {          // the number of the atom in a reaction
        in.byte();               // a tag
        if (in.byte() > 127) in.number();
    }
    if (flags & 0x04) {  // the name of a dummy atom
        in.byte();       // a tag
        const i32 length = in.number();
        in.expect(length >= 0 && length <= in.bytes.size - in.i);
        if (in.good) in.i += length;
    }
    in.expect(hydrogens < 256);
    const u64 aromatic = (flags >> 6) & 1;
    return element | hydrogens << AtomCode::hydrogens |
           static_cast<u64>(charge + 128) << AtomCode::charge |
           hybridization << AtomCode::hybridization | aromatic << AtomCode::aromatic;
}

inline Bond read_bond(MoleculeBytes& in, i64 n_atoms) {
    Bond bond;
    bond.begin = in.byte();
    bond.end = in.byte();
    const auto flags = in.byte();
    in.expect(bond.begin < n_atoms && bond.end < n_atoms && bond.begin != bond.end);
    in.expect((flags & 0x91) == 0);  // queries, ends that are several atoms
    bond.type = flags & 0x08 ? in.byte() : 1;
    if (flags & 0x04) in.byte();  // direction
    if (flags & 0x02) {           // stereo, and the atoms that it refers to
        in.byte();
        for (int n = in.byte(); n > 0 && in.good; n--) in.byte();
    }
    return bond;
}

// Mark the atoms of rings in their codes.
inline void read_rings(MoleculeBytes& in, Span<u64> atoms) {
    const i32 n_rings = in.number();
    in.expect(n_rings >= 0);
    for (i32 r = 0; r < n_rings && in.good; r++) {
        for (int n = in.byte(); n > 0 && in.good; n--) {
            const i64 a = in.byte();
            in.expect(a < atoms.size);
            if (in.good) atoms[a] |= u64{1} << AtomCode::ring;
        }
    }
}

// Lists each atom's neighbors in ascending order, and counts them in the atom's code.
inline bool lay_out(const std::vector<Bond>& bonds, i64 n_atoms, UnpackedMolecules& out) {
    const size_t first = out.atoms.size() - n_atoms, start = out.neighbors.size();
    std::vector<i32> places(n_atoms + 1, 0);
    for (const Bond& bond : bonds) places[bond.begin + 1]++, places[bond.end + 1]++;
    for (i64 a = 0; a < n_atoms; a++) {
        out.degrees.push_back(places[a + 1]);
        out.atoms[first + a] |= static_cast<u64>(places[a + 1]) << AtomCode::degree;
        places[a + 1] += places[a];
    }
    out.neighbors.resize(start + 2 * bonds.size());
    out.bonds.resize(start + 2 * bonds.size());
    std::vector<i32> filled(places);
    bool good = true;
    auto insert = [&](i32 at, i32 neighbor, std::uint8_t type) {
        i32 p = filled[at]++;
        for (; p > places[at] && out.neighbors[start + p - 1] > neighbor; p--) {
            out.neighbors[start + p] = out.neighbors[start + p - 1];
            out.bonds[start + p] = out.bonds[start + p - 1];
        }
        if (p > places[at] && out.neighbors[start + p - 1] == neighbor) good = false;
        out.neighbors[start + p] = neighbor;
        out.bonds[start + p] = type;
    };
    for (const Bond& bond : bonds) {
        insert(bond.begin, bond.end, bond.type);
        insert(bond.end, bond.begin, bond.type);
    }
    return good;
}

inline bool unpack_molecule(MoleculeBytes in, UnpackedMolecules& out) {
    constexpr std::uint8_t ATOMS = 1, BONDS = 11, RINGS = 0x42;  // as sanitizing finds them
    in.expect(static_cast<u32>(in.number()) == RDKIT_MARK);
    in.number();  // which is zero
    in.expect(in.number() == RDKIT_VERSION);
    in.number(), in.number();  // the smaller parts of the version
    const i64 n_atoms = in.number(), n_bonds = in.number();
    in.expect(n_atoms > 0 && n_atoms <= MAX_SMALL_MOLECULE && n_bonds >= 0);
    in.byte();
    in.expect(in.byte() == ATOMS);
    const size_t first = out.atoms.size();
    for (i64 a = 0; a < n_atoms && in.good; a++) out.atoms.push_back(read_atom(in));
    in.expect(in.byte() == BONDS);
    std::vector<Bond> bonds;
    for (i64 b = 0; b < n_bonds && in.good; b++) bonds.push_back(read_bond(in, n_atoms));
    in.expect(in.byte() == RINGS);
    if (in.good) read_rings(in, {out.atoms.data() + first, n_atoms});
    return in.good && lay_out(bonds, n_atoms, out);
}

// Molecule m has the bytes from offsets[m] to offsets[m + 1].
inline UnpackedMolecules unpack_molecules(Span<const std::uint8_t> bytes, Span<const i64> offsets) {
    UnpackedMolecules out;
    for (i64 m = 0; m + 1 < offsets.size; m++) {
        const size_t n_atoms = out.atoms.size(), n_degrees = out.degrees.size(),
                     n_arcs = out.neighbors.size();
        const bool good = unpack_molecule({bytes.part(offsets[m], offsets[m + 1])}, out);
        if (!good) {
            out.atoms.resize(n_atoms);
            out.degrees.resize(n_degrees);
            out.neighbors.resize(n_arcs);
            out.bonds.resize(n_arcs);
        }
        out.n_atoms.push_back(good ? static_cast<i64>(out.atoms.size() - n_atoms) : -1);
    }
    return out;
}

}  // namespace fdgnn
