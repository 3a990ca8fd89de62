// Searches in parts and merges them, for Nextflow (DSL 2). Not run by the tests.
//
//   nextflow run main.nf --models Pfam-A.h3m --targets proteins.hjdb --parts 64 --options=--cut_ga
params.parts = 64
params.options = ''

process SEARCH_PART {
    cpus 16
    memory '32 GB'
    // Retry after a lack of memory, a full disk, an interruption or a kill, but not after bad
    // options (2) or inputs (3).
    errorStrategy { task.exitStatus in [1, 5, 7, 130, 137, 143] ? 'retry' : 'finish' }
    maxRetries 3

    input:
    val part
    path models
    path targets

    output:
    path "${part}.hjpart"

    script:
    """
    hmmjit search --quiet --part ${part}/${params.parts} --part-file ${part}.hjpart \\
        --cpu ${task.cpus} --mem ${(task.memory.toMega() * 7).intdiv(8)}M \\
        ${params.options} ${models} ${targets}
    """
}

process MERGE {
    memory '16 GB'
    publishDir 'results', mode: 'copy'

    input:
    path parts

    output:
    path 'report.txt'
    path 'targets.tbl'
    path 'domains.tbl'

    script:
    """
    hmmjit merge --mem ${(task.memory.toMega() * 7).intdiv(8)}M -o report.txt \\
        --tblout targets.tbl --domtblout domains.tbl ${parts}
    """
}

workflow {
    found = SEARCH_PART(Channel.of(1..params.parts), file(params.models), file(params.targets))
    MERGE(found.collect())
}
