// Lists of the members of structs of hmmjit.h; made by generate.py, not by hand.
#pragma once

// clang-format off
#define HMMJIT_MODEL_INFO_MEMBERS(X) X(name) X(accession) X(description) X(consensus) X(length) \
  X(alphabet) X(gathering) X(gathering_domain) X(trusted) X(trusted_domain) X(noise) \
  X(noise_domain) X(query_name) X(query_accession) X(query_description) X(match) X(insert) \
  X(transition) X(composition) X(letters) X(msv_mu) X(msv_lambda) X(viterbi_mu) X(viterbi_lambda) \
  X(forward_tau) X(forward_lambda)
#define HMMJIT_TARGET_MEMBERS(X) X(name) X(accession) X(description) X(residues) X(index) \
  X(length)
#define HMMJIT_DATABASE_INFO_MEMBERS(X) X(format_version) X(alphabet) X(targets) X(residues) \
  X(shortest) X(median) X(longest) X(file_bytes) X(identity)
#define HMMJIT_CACHE_SETTINGS_MEMBERS(X) X(directory) X(system_directory) X(mode) X(allow_group) \
  X(max_bytes) X(max_memory_bytes)
#define HMMJIT_CACHE_STATISTICS_MEMBERS(X) X(memory_hits) X(user_hits) X(system_hits) X(misses) \
  X(published) X(publish_failures) X(bad_entries) X(refused_entries) X(entries) X(disk_bytes)
#define HMMJIT_CUTOFF_MEMBERS(X) X(model) X(score) X(domain_score)
#define HMMJIT_SEARCH_OPTIONS_MEMBERS(X) X(E) X(domE) X(incE) X(incdomE) X(T) X(domT) X(incT) \
  X(incdomT) X(cutoffs) X(max_sensitivity) X(Z) X(domZ) X(F1) X(F2) X(F3) X(bias_filter) X(null2) \
  X(seed) X(keep_alignments) X(threads) X(device) X(memory) X(vram) X(gpus) X(gpu_count) X(verify) \
  X(cache) X(first_target) X(target_count) X(missing_cutoffs) X(cutoff_table) X(cutoff_count)
#define HMMJIT_PROGRESS_MEMBERS(X) X(models_started) X(models_done) X(targets) X(residues) \
  X(target_bytes_read) X(target_bytes_total) X(cells) X(cells_queued) X(targets_complete)
#define HMMJIT_CALLBACKS_MEMBERS(X) X(context) X(interval_ms) X(cancellation)
#define HMMJIT_FILTER_COUNTS_MEMBERS(X) X(targets) X(residues) X(msv) X(bias) X(viterbi) \
  X(forward)
#define HMMJIT_SEARCH_STATISTICS_MEMBERS(X) X(backend) X(device) X(threads) X(models) X(targets) \
  X(residues) X(passes) X(hits_reported) X(domains_reported) X(device_cells) X(device_launches) \
  X(wall_seconds) X(read_seconds) X(setup_seconds) X(msv_seconds) X(bias_seconds) \
  X(viterbi_seconds) X(scoring_seconds) X(counts) X(streamed) X(spooled) X(ssv_seconds) \
  X(report_seconds) X(verified) X(peak_resident_bytes) X(device_busy_seconds) \
  X(device_active_seconds) X(device_peak_bytes) X(device_upload_bytes) X(kernels) \
  X(kernels_compiled) X(kernels_loaded) X(compile_seconds) X(json)
#define HMMJIT_RESULT_INFO_MEMBERS(X) X(model_index) X(model_name) X(model_accession) \
  X(model_description) X(model_length) X(has_alignments) X(hits) X(reported) X(included) \
  X(domains) X(Z) X(domZ) X(seconds) X(counts) X(long_targets)
#define HMMJIT_HIT_MEMBERS(X) X(name) X(accession) X(description) X(index) X(e_value) X(score) \
  X(bias) X(expected_domains) X(length) X(reported) X(included) X(regions) X(clustered) \
  X(overlaps) X(envelopes) X(best_domain) X(first_domain) X(domains) X(ln_p)
#define HMMJIT_DOMAIN_MEMBERS(X) X(hit) X(envelope_from) X(envelope_to) X(alignment_from) \
  X(alignment_to) X(model_from) X(model_to) X(reported) X(included) X(score) X(bias) \
  X(conditional_e_value) X(independent_e_value) X(accuracy) X(model) X(match) X(sequence) \
  X(posterior) X(reference) X(structure) X(ln_p)
#define HMMJIT_NHMMER_OPTIONS_MEMBERS(X) X(search) X(strands) X(window_length) X(window_beta) \
  X(B1) X(B2) X(B3) X(block_length)
#define HMMJIT_REPORT_OPTIONS_MEMBERS(X) X(prefer_accession) X(alignments) X(text_width) X(search) \
  X(page_title) X(page_targets)
#define HMMJIT_RUN_INFO_MEMBERS(X) X(program) X(version) X(query_file) X(target_file) X(settings) \
  X(folder) X(date)
#define HMMJIT_PART_INFO_MEMBERS(X) X(part) X(last_part) X(parts) X(first_target) X(last_target) \
  X(first_model) X(last_model) X(targets_reported) X(domains) X(content) X(model_part) \
  X(last_model_part) X(model_parts)
#define HMMJIT_BUILD_OPTIONS_MEMBERS(X) X(matrix) X(matrix_file) X(gap_open) X(gap_extend) \
  X(single_rows_by_matrix) X(columns) X(least_occupied) X(fragment) X(weights) X(effective) \
  X(weight_identity) X(effective_number) X(relative_entropy) X(total_entropy) \
  X(effective_identity) X(prior) X(most_insertions) X(msv_length) X(msv_targets) X(viterbi_length) \
  X(viterbi_targets) X(forward_length) X(forward_targets) X(tail_mass) X(seed) X(threads) \
  X(alphabet) X(window_length) X(window_beta)
#define HMMJIT_ITERATION_OPTIONS_MEMBERS(X) X(rounds) X(prefer_accession) X(alignments) \
  X(text_width) X(a3m) X(search) X(build) X(alignment_file)
#define HMMJIT_ROUND_INFO_MEMBERS(X) X(query) X(number) X(converged) X(last) X(included) \
  X(new_targets)
#define HMMJIT_DEVICE_MEMBERS(X) X(name) X(ordinal) X(major) X(minor) X(sm_count) X(clock_khz) \
  X(max_threads_per_sm) X(max_blocks_per_sm) X(registers_per_sm) X(max_registers_per_thread) \
  X(shared_per_sm) X(shared_per_block) X(shared_reserved_per_block) X(memory_bytes) X(l2_bytes) \
  X(memory_bandwidth)
#define HMMJIT_CONSTANT_MEMBERS(X) X(name) X(value)
#define HMMJIT_TEMPLATE_MEMBERS(X) X(path) X(text)
#define HMMJIT_PROBLEM_MEMBERS(X) X(family) X(parameters) X(parameter_count)
#define HMMJIT_CONFIGURATION_MEMBERS(X) X(constants) X(constant_count) X(threads_x) X(threads_y) \
  X(threads_z) X(registers) X(local_bytes) X(dynamic_shared_bytes) X(items_per_clock_per_sm) \
  X(binding_resource)
#define HMMJIT_VARIANT_MEMBERS(X) X(name) X(family) X(template_file) X(entry_name) \
  X(compile_options) X(compile_option_count) X(by_name_only) X(context)
#define HMMJIT_ENGINE_SETTINGS_MEMBERS(X) X(templates) X(template_count) X(variants) \
  X(variant_count) X(cache) X(compile_threads) X(highest_compiler_major)
#define HMMJIT_PLAN_OPTIONS_MEMBERS(X) X(variant) X(policy) X(exact_length) X(alphabet_codes)
#define HMMJIT_IMAGE_INFO_MEMBERS(X) X(name) X(variant) X(architecture) X(origin) X(log) X(bytes) \
  X(byte_count) X(is_ptx) X(registers) X(local_bytes) X(spill_bytes) X(static_shared_bytes) \
  X(parameter_bytes) X(seconds)
