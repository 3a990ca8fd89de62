// Models from sequences and alignments, equal to those of phmmer, jackhmmer, nhmmer and hmmbuild.
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

/// HMMER's defaults; for members see hmmjit.h. Source: HMMER user's guide, manual pages of phmmer,
/// nhmmer and hmmbuild.
struct BuildOptions : hmmjit_build_options {
  HMMJIT_EXPORT BuildOptions() noexcept;
};

/// Builds a calibrated model from a sequence, as phmmer does, or nhmmer for nucleotides: each
/// residue becomes a position with emissions from a substitution matrix. Reports show the
/// sequence's name, accession and description. Thread-safe. Cost: about 50 ms of one core, nearly
/// all for the calibration.
///
/// Throws Error kUsage for invalid options or names, kInput for invalid residues, an empty sequence
/// or an unusable matrix.
HMMJIT_EXPORT Model build_model(const Sequence& sequence,
                                const hmmjit_build_options& options = BuildOptions());
/// Builds a model from every sequence with residues, in order, on several threads.
HMMJIT_EXPORT Models build_models(const Targets& sequences,
                                  const hmmjit_build_options& options = BuildOptions());

/// Builds a model from each alignment of a file, as hmmbuild does: any number in Stockholm, or one
/// in aligned FASTA, A2M, PSI-BLAST, Clustal, SELEX or PHYLIP; plain, gzip or zstd. `format`:
/// empty, or a name of --informat. An unnamed alignment gets the name of the file. Thread-safe.
///
/// Throws Error kInput for a missing or malformed file, a file without an alignment, or an
/// alignment unfit for a model; kUsage for invalid options.
HMMJIT_EXPORT Models build_from_alignments(const std::string& path,
                                           const hmmjit_build_options& options = BuildOptions(),
                                           const std::string& format = {});
/// As build_from_alignments, for the content of a file in memory. Messages use `name` as path; an
/// unnamed alignment gets it too.
HMMJIT_EXPORT Models build_from_alignment_text(std::string_view contents,
                                               const hmmjit_build_options& options = BuildOptions(),
                                               const std::string& format = {},
                                               const std::string& name = "memory");

HMMJIT_END_NAMESPACE
