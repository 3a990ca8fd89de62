"""The C interface as ctypes needs it, options and attributes; made from hmmjit.h by generate.py."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple, TypedDict, Union

from ._fields import Field, Fields, text

if TYPE_CHECKING:
    from ._machine import Cache

Cutoffs = Mapping[str, Tuple[Optional[float], Optional[float]]]

# Members of structs as name:code; see _binding.py.
STRUCTS: Dict[str, str] = {
    'model_info': """size:z name:s accession:s description:s consensus:s length:i alphabet:i gathering:d
        gathering_domain:d trusted:d trusted_domain:d noise:d noise_domain:d query_name:s query_accession:s
        query_description:s match:p insert:p transition:p composition:p letters:i reserved:i msv_mu:d msv_lambda:d
        viterbi_mu:d viterbi_lambda:d forward_tau:d forward_lambda:d""",
    'target': """size:z name:s accession:s description:s residues:s index:L length:L""",
    'database_info': """size:z format_version:i alphabet:i targets:L residues:L shortest:u median:u longest:u
        reserved:u file_bytes:L identity:L""",
    'cache_settings': """size:z directory:s system_directory:s mode:i allow_group:i max_bytes:L max_memory_bytes:L""",
    'cache_statistics': """size:z memory_hits:L user_hits:L system_hits:L misses:L published:L publish_failures:L
        bad_entries:L refused_entries:L entries:L disk_bytes:L""",
    'cutoff': """model:s score:d domain_score:d""",
    'search_options': """size:z E:d domE:d incE:d incdomE:d T:d domT:d incT:d incdomT:d cutoffs:i max_sensitivity:i
        Z:d domZ:d F1:d F2:d F3:d bias_filter:i null2:i seed:u keep_alignments:i threads:i device:i memory:L vram:L
        gpus:p gpu_count:z verify:i reserved:i cache:p first_target:s target_count:l missing_cutoffs:i
        reserved_too:i cutoff_table:p cutoff_count:z""",
    'progress': """size:z models_started:L models_done:L targets:L residues:L target_bytes_read:L
        target_bytes_total:L cells:L cells_queued:L targets_complete:i reserved:i""",
    'callbacks': """size:z context:p result:c progress:c interval_ms:u reserved:u cancellation:p warning:c""",
    'filter_counts': """targets:L residues:L msv:L bias:L viterbi:L forward:L""",
    'search_statistics': """size:z backend:s device:s threads:i reserved:i models:L targets:L residues:L passes:L
        hits_reported:L domains_reported:L device_cells:L device_launches:L wall_seconds:d read_seconds:d
        setup_seconds:d msv_seconds:d bias_seconds:d viterbi_seconds:d scoring_seconds:d
        counts:hmmjit_filter_counts streamed:i spooled:i ssv_seconds:d report_seconds:d verified:L
        peak_resident_bytes:L device_busy_seconds:d device_active_seconds:d device_peak_bytes:L
        device_upload_bytes:L kernels:L kernels_compiled:L kernels_loaded:L compile_seconds:d json:s""",
    'result_info': """size:z model_index:z model_name:s model_accession:s model_description:s model_length:i
        has_alignments:i hits:z reported:z included:z domains:z Z:d domZ:d seconds:d counts:hmmjit_filter_counts
        long_targets:i scan:i""",
    'hit': """size:z name:s accession:s description:s index:L e_value:d score:d bias:d expected_domains:d length:i
        reported:i included:i regions:i clustered:i overlaps:i envelopes:i reserved:i best_domain:z first_domain:z
        domains:z ln_p:d""",
    'domain': """size:z hit:z envelope_from:i envelope_to:i alignment_from:i alignment_to:i model_from:i model_to:i
        reported:i included:i score:d bias:d conditional_e_value:d independent_e_value:d accuracy:d model:s match:s
        sequence:s posterior:s reference:s structure:s ln_p:d""",
    'nhmmer_options': """size:z search:p strands:i window_length:i window_beta:d B1:i B2:i B3:i block_length:i""",
    'report_options': """size:z prefer_accession:i alignments:i text_width:i reserved:i search:p page_title:s
        page_targets:L""",
    'run_info': """size:z program:s version:s query_file:s target_file:s settings:s folder:s date:s""",
    'part_info': """size:z part:u last_part:u parts:u reserved:u first_target:L last_target:L first_model:L
        last_model:L targets_reported:L domains:L content:n64 model_part:u last_model_part:u model_parts:u
        reserved_too:u""",
    'build_options': """size:z matrix:s matrix_file:s gap_open:d gap_extend:d single_rows_by_matrix:i columns:i
        least_occupied:d fragment:d weights:i effective:i weight_identity:d effective_number:d relative_entropy:d
        total_entropy:d effective_identity:d prior:i most_insertions:i msv_length:i msv_targets:i viterbi_length:i
        viterbi_targets:i forward_length:i forward_targets:i tail_mass:d seed:u threads:i alphabet:i
        window_length:i window_beta:d cancellation:p""",
    'iteration_options': """size:z rounds:i prefer_accession:i alignments:i text_width:i a3m:i reserved:i search:p
        build:p alignment_file:s""",
    'round_info': """size:z query:z number:i converged:i last:i reserved:i included:L new_targets:L""",
    'device': """size:z name:n128 ordinal:i major:i minor:i sm_count:i clock_khz:i max_threads_per_sm:i
        max_blocks_per_sm:i registers_per_sm:i max_registers_per_thread:i shared_per_sm:i shared_per_block:i
        shared_reserved_per_block:i memory_bytes:l l2_bytes:l memory_bandwidth:d""",
    'constant': """name:s value:l""",
    'template': """path:s text:s""",
    'problem': """size:z family:s parameters:p parameter_count:z""",
    'configuration': """size:z constants:p constant_count:z threads_x:i threads_y:i threads_z:i registers:i
        local_bytes:i reserved:i dynamic_shared_bytes:l items_per_clock_per_sm:d binding_resource:s""",
    'variant': """size:z name:s family:s template_file:s entry_name:s compile_options:p compile_option_count:z
        by_name_only:i reserved:i context:p configurations:c""",
    'engine_settings': """size:z templates:p template_count:z variants:p variant_count:z cache:p compile_threads:i
        highest_compiler_major:i""",
    'plan_options': """size:z variant:s policy:i exact_length:i alphabet_codes:i reserved:i""",
    'image_info': """size:z name:s variant:s architecture:s origin:s log:s bytes:p byte_count:z is_ptx:i
        registers:i local_bytes:i spill_bytes:i static_shared_bytes:i parameter_bytes:i seconds:d""",
}

# Functions as result and arguments, by their codes.
FUNCTIONS: Dict[str, str] = {
    'status_name': 'si', 'error_status': 'ip', 'error_text': 'sp', 'error_message': 'sp', 'error_where': 'sp',
    'error_remedy': 'sp', 'error_free': 'vp', 'version_number': 'i', 'version': 's', 'text_data': 'sp',
    'text_size': 'zp', 'text_free': 'vp', 'models_create': 'ep', 'models_from_file': 'esp', 'models_load': 'esp',
    'models_from_memory': 'epzsp', 'models_add': 'eppz', 'models_add_with_query': 'eppzsss',
    'models_add_changed': 'eppzp', 'models_write': 'epzip', 'models_count': 'zp', 'models_get': 'epzp',
    'models_for_each': 'eppp', 'models_free': 'vp', 'targets_create': 'eip', 'targets_from_file': 'essp',
    'targets_load': 'esisp', 'targets_from_memory': 'epzissp', 'targets_keep': 'epip', 'targets_add': 'epssssz',
    'targets_append': 'epp', 'targets_count': 'Lp', 'targets_residues': 'Lp', 'targets_for_each': 'epiLpp',
    'targets_free': 'vp', 'database_build': 'epzis', 'database_get_info': 'espp', 'database_verify': 'es',
    'cache_open': 'epp', 'cache_directory': 'sp', 'cache_get_statistics': 'epp', 'cache_trim': 'epLp',
    'cache_clear': 'epp', 'cache_export': 'epsp', 'cache_import': 'epsp', 'cache_free': 'vp',
    'search_options_init': 'ep', 'cancellation_create': 'ep', 'cancellation_cancel': 'vp', 'cancellation_free': 'vp',
    'search': 'eppppp', 'scan': 'eppppp', 'results_count': 'zp', 'results_get': 'ppz', 'results_statistics': 'epp',
    'results_get_options': 'epp', 'results_free': 'vp', 'result_get_info': 'epp', 'result_get_hits': 'epzzp',
    'result_get_domains': 'epzzp', 'result_copy': 'epp', 'result_write': 'epp', 'result_read': 'epzp',
    'result_merge': 'epzpp', 'result_free': 'vp', 'nhmmer_options_init': 'ep', 'nhmmer': 'eppppp',
    'report_create': 'eispp', 'main_report_header': 'eppp', 'report_add_text': 'eps', 'report_add': 'epp',
    'report_complete': 'epp', 'report_take_text': 'epp', 'report_free': 'vp', 'search_part': 'epsuusppp',
    'search_model_part': 'epsuuuusppp', 'merge_parts': 'epzpp', 'join_parts': 'epzsp', 'part_get_info': 'espp',
    'part_get_options': 'esp', 'part_verify': 'es', 'parts_missing': 'epzp', 'build_options_init': 'ep',
    'build_models': 'eppp', 'build_from_alignments': 'esspp', 'build_from_alignment_memory': 'epzsspp',
    'iteration_options_init': 'ep', 'iteration_create': 'epppp', 'iteration_from_models': 'epppp',
    'iteration_queries': 'zp', 'iteration_done': 'ip', 'iteration_next': 'eppp', 'rounds_count': 'zp',
    'rounds_get': 'ppz', 'rounds_free': 'vp', 'round_get_info': 'epp', 'round_result': 'pp', 'round_model': 'epp',
    'round_alignment': 'sp', 'report_add_iteration': 'eppz', 'iteration_free': 'vp', 'device_count': 'epp',
    'device_get': 'eip', 'device_find': 'esp', 'compiler_version': 'eppp', 'offer_add': 'epp', 'offer_reject': 'vps',
    'engine_create': 'epp', 'engine_free': 'vp', 'engine_plan': 'eppppp', 'engine_plan_stage': 'epsippp',
    'engine_render': 'eppp', 'engine_compile': 'eppp', 'engine_cancel': 'vp', 'plan_text': 'sp', 'plan_json': 'sp',
    'plan_variant': 'sp', 'plan_constant': 'epsp', 'plan_free': 'vp', 'image_get_info': 'epp', 'image_free': 'vp',
    'gpu_open': 'eip', 'gpu_get_device': 'epp', 'gpu_memory': 'eppp', 'gpu_synchronize': 'ep', 'gpu_free': 'vp',
    'stream_create': 'epp', 'stream_synchronize': 'ep', 'stream_from_native': 'eppp', 'stream_native': 'pp',
    'stream_finished': 'epp', 'stream_free': 'vp', 'event_create': 'epip', 'event_record': 'epp',
    'event_synchronize': 'ep', 'event_finished': 'epp', 'event_wait_in': 'epp', 'event_milliseconds': 'eppp',
    'event_native': 'pp', 'event_free': 'vp', 'buffer_create': 'epzp', 'buffer_address': 'Lp',
    'buffer_upload': 'epppzz', 'buffer_download': 'epppzz', 'buffer_fill': 'eppbzz', 'buffer_free': 'vp',
    'engine_load': 'epppp', 'kernel_native': 'pp', 'kernel_resident_blocks': 'up', 'kernel_launch': 'eppuuupz',
    'kernel_free': 'vp'
}


class SearchOptions(TypedDict, total=False):
    """Options of a search, with hmmsearch's names, meaning and defaults; None is the default.

    * E: report targets of at most this E-value; default 10.0
    * domE: report domains of at most this conditional E-value; default 10.0
    * incE: include targets of at most this E-value; default 0.01
    * incdomE: include domains of at most this conditional E-value; default 0.01
    * T: report targets of at least this score in bits, in place of E
    * domT: report domains of at least this score in bits, in place of domE
    * incT: include targets of at least this score in bits, in place of incE
    * incdomT: include domains of at least this score in bits, in place of incdomE
    * cutoffs: "gathering", "noise" or "trusted": the models' own cutoffs in place of these thresholds; or a mapping
      of names or accessions to (score of targets, score of domains), None for no threshold
    * max: switch all filters off (--max); default False
    * Z: number of targets for E-values, finite
    * domZ: number of targets for conditional E-values
    * F1: P-value threshold of the MSV filter; default 0.02
    * F2: P-value threshold of the Viterbi filter; default 0.001
    * F3: P-value threshold of the Forward filter; default 1e-05
    * bias_filter: use the composition bias filter; default True
    * null2: correct scores for biased composition; default True
    * seed: of random numbers, 0: an arbitrary one; default 42
    * alignments: keep the alignments of domains; default True
    * threads: busy threads at most, 0: all available cores; default 0
    * device: "auto" (a GPU where it pays), "cpu", "gpu", or ordinals as in "gpu:0,1"
    * memory: bound in bytes, or "400M", "2G"; 0: half of the free memory; default 0
    * vram: bytes of each GPU, or "8G"; 0: nine tenths of its free memory; default 0
    * verify: targets per model whose GPU result is checked on the CPU; None: as many as take one hundredth of the
      core-seconds
    * cache: of kernels; None: the environment's
    * first_target: begin at the target of this name
    * target_count: search as many targets at most
    * cut_missing: models without `cutoffs`: "error", "skip", or "default" (judged by the thresholds)
    """

    E: Optional[float]
    domE: Optional[float]
    incE: Optional[float]
    incdomE: Optional[float]
    T: Optional[float]
    domT: Optional[float]
    incT: Optional[float]
    incdomT: Optional[float]
    cutoffs: Union[str, Cutoffs, None]
    max: Optional[bool]
    Z: Optional[float]
    domZ: Optional[float]
    F1: Optional[float]
    F2: Optional[float]
    F3: Optional[float]
    bias_filter: Optional[bool]
    null2: Optional[bool]
    seed: Optional[int]
    alignments: Optional[bool]
    threads: Optional[int]
    device: Optional[str]
    memory: Optional[Union[int, str]]
    vram: Optional[Union[int, str]]
    verify: Optional[int]
    cache: Optional[Cache]
    first_target: Optional[str]
    target_count: Optional[int]
    cut_missing: Optional[str]


# By their names in Python: the C member and the default.
OPTIONS: Dict[str, Tuple[str, Any]] = {
    'E': ('E', 10.0), 'domE': ('domE', 10.0), 'incE': ('incE', 0.01), 'incdomE': ('incdomE', 0.01), 'T': ('T', None),
    'domT': ('domT', None), 'incT': ('incT', None), 'incdomT': ('incdomT', None), 'cutoffs': ('cutoffs', None),
    'max': ('max_sensitivity', False), 'Z': ('Z', None), 'domZ': ('domZ', None), 'F1': ('F1', 0.02),
    'F2': ('F2', 0.001), 'F3': ('F3', 1e-05), 'bias_filter': ('bias_filter', True), 'null2': ('null2', True),
    'seed': ('seed', 42), 'alignments': ('keep_alignments', True), 'threads': ('threads', 0),
    'device': ('device', "auto"), 'memory': ('memory', 0), 'vram': ('vram', 0), 'verify': ('verify', None),
    'cache': ('cache', None), 'first_target': ('first_target', None), 'target_count': ('target_count', None),
    'cut_missing': ('missing_cutoffs', "error")
}


class HitFields(Fields):
    __slots__ = ()
    name = Field('name', text, 'Of the target.')
    accession = Field('accession', text, '"" where there is none.')
    description = Field('description', text, '"" where there is none.')
    index = Field('index', int, 'Among the targets searched, from 0.')
    e_value = Field('e_value', float, 'Expected number of false hits of this score among Z targets.')
    score = Field('score', float, 'Bits, of the whole target.')
    bias = Field('bias', float, 'Bits subtracted for biased composition.')
    expected_domains = Field('expected_domains', float, 'Mean number over all paths (Forward).')
    length = Field('length', int, 'Residues.')
    reported = Field('reported', bool, 'Satisfies the reporting thresholds.')
    included = Field('included', bool, 'Also satisfies the inclusion thresholds.')
    regions = Field('regions', int, 'Found by posterior decoding.')
    clustered = Field('clustered', int, 'Regions resolved by clustering sampled paths.')
    overlaps = Field('overlaps', int, 'Envelopes that overlap their neighbour.')
    envelopes = Field('envelopes', int, 'Found in these regions.')
    ln_p = Field('ln_p', float, 'Natural logarithm of the P-value: exact where the E-value is 0.')


class DomainFields(Fields):
    __slots__ = ()
    envelope_from = Field('envelope_from', int, 'First residue of the envelope, on the target.')
    envelope_to = Field('envelope_to', int, 'Last residue of the envelope, on the target.')
    alignment_from = Field('alignment_from', int, 'First aligned residue, on the target.')
    alignment_to = Field('alignment_to', int, 'Last aligned residue, on the target.')
    model_from = Field('model_from', int, 'First aligned position of the model.')
    model_to = Field('model_to', int, 'Last aligned position of the model.')
    reported = Field('reported', bool, 'Satisfies the reporting thresholds, as does its target.')
    included = Field('included', bool, 'Also satisfies the inclusion thresholds.')
    score = Field('score', float, 'Bits.')
    bias = Field('bias', float, 'Bits subtracted for biased composition.')
    conditional_e_value = Field('conditional_e_value', float, 'Expected number of such domains among the domZ targets reported (c-Evalue).')
    independent_e_value = Field('independent_e_value', float, 'E-value as if it were the only domain (i-Evalue).')
    accuracy = Field('accuracy', float, 'Mean posterior probability of the aligned residues, 0 to 1.')
    ln_p = Field('ln_p', float, 'Natural logarithm of the P-value: exact where the E-value is 0.')


class AlignmentFields(Fields):
    __slots__ = ()
    model = Field('model', text, 'Consensus of the model, \'.\' at insertions; "": not kept.')
    match = Field('match', text, "Letters where both agree, '+' where the model favours the residue.")
    sequence = Field('sequence', text, "Residues, '-' at deletions, lower case at insertions.")
    posterior = Field('posterior', text, "'0' to '9' and '*', posterior probability of each residue.")
    reference = Field('reference', text, 'Reference annotation (RF) of the model; "": none.')
    structure = Field('structure', text, 'Structure annotation (CS) of the model; "": none.')


class ResultFields(Fields):
    __slots__ = ()
    index = Field('model_index', int, 'Among the models searched, from 0.')
    name = Field('model_name', text, 'Of the model, or of the sequence it was built from.')
    accession = Field('model_accession', text, '"" where there is none.')
    description = Field('model_description', text, '"" where there is none.')
    length = Field('model_length', int, 'Positions of the model.')
    has_alignments = Field('has_alignments', bool, 'The search kept alignments.')
    Z = Field('Z', float, 'Number of targets assumed for E-values; 1 for nhmmer.')
    domZ = Field('domZ', float, 'Number of targets assumed for conditional E-values.')
    seconds = Field('seconds', float, 'From set-up to the last domain; other models run at the same time.')
    long_targets = Field('long_targets', bool, 'Of nhmmer: each domain is a hit of its own, on one of two strands.')
    scan = Field('scan', bool, 'Of hmmjit_scan: the query is a sequence, of model_length residues, and hits are models.')


class ModelFields(Fields):
    __slots__ = ()
    consensus = Field('consensus', text, '`length` characters.')
    length = Field('length', int, 'Positions.')
