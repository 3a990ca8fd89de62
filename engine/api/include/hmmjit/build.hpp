// Models from sequences and alignments, as phmmer, jackhmmer, nhmmer and hmmbuild build them.
//
//   const hmmjit::Model query = hmmjit::build_model({.name = "query", .residues = "MKVLAAGGHKLM"});
//   const hmmjit::Models families = hmmjit::build_from_alignments("families.sto");
#pragma once

#include <string>
#include <string_view>

#include "hmmjit/error.hpp"
#include "hmmjit/hmmjit.h"
#include "hmmjit/models.hpp"
#include "hmmjit/targets.hpp"

HMMJIT_BEGIN_NAMESPACE

/// HMMER's, described in hmmjit.h. Source: HMMER user's guide, manual pages of phmmer, nhmmer and
/// hmmbuild.
struct BuildOptions : hmmjit_build_options {
  HMMJIT_EXPORT BuildOptions() noexcept;
};

/// The model that phmmer, or nhmmer for nucleotides, searches with: each residue becomes a
/// position, whose emissions come from a substitution matrix. Calibrated. Reports show the
/// sequence's name, accession and description. Thread-safe; takes about 50 ms of one core, nearly
/// all of it for the calibration.
///
/// Throws Error kUsage for invalid options or names, kInput for invalid residues, an empty sequence
/// or an unusable matrix.
HMMJIT_EXPORT Model build_model(const Sequence& sequence,
                                const hmmjit_build_options& options = BuildOptions());
/// The same of every sequence that has residues, in order, on several threads.
HMMJIT_EXPORT Models build_models(const Targets& sequences,
                                  const hmmjit_build_options& options = BuildOptions());

/// The model that hmmbuild builds from each alignment of a file: Stockholm (any number of them), or
/// one in aligned FASTA, A2M, PSI-BLAST, Clustal, SELEX or PHYLIP; plain, gzip or zstd. `format`:
/// empty, or a name as of --informat. An alignment without a name has that of the file.
/// Thread-safe.
///
/// Throws Error kInput for a missing or malformed file, one without an alignment, or an
/// alignment that no model can be made of; kUsage for options that make no sense.
HMMJIT_EXPORT Models build_from_alignments(const std::string& path,
                                           const hmmjit_build_options& options = BuildOptions(),
                                           const std::string& format = {});
/// The same of the contents of such a file; `name` stands for it in messages, and names an
/// alignment that has none.
HMMJIT_EXPORT Models build_from_alignment_text(std::string_view contents,
                                               const hmmjit_build_options& options = BuildOptions(),
                                               const std::string& format = {},
                                               const std::string& name = "memory");

HMMJIT_END_NAMESPACE
