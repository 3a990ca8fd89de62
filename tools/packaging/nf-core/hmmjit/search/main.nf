process HMMJIT_SEARCH {
    tag "${meta.id}"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    // Who publishes the package names its containers here.
    container "hmmjit:0.1.0"

    input:
    tuple val(meta), path(hmmfile), path(seqdb), val(write_align), val(write_target), val(write_domain)

    output:
    tuple val(meta), path('*.txt.gz')   , emit: output
    tuple val(meta), path('*.sto.gz')   , emit: alignments    , optional: true
    tuple val(meta), path('*.tbl.gz')   , emit: target_summary, optional: true
    tuple val(meta), path('*.domtbl.gz'), emit: domain_summary, optional: true
    tuple val("${task.process}"), val('hmmjit'), eval("hmmjit --version | sed 's/hmmjit //'"), emit: versions_hmmjit, topic: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args      = task.ext.args   ?: ''
    def prefix    = task.ext.prefix ?: "${meta.id}"
    def memory    = task.memory ? "--mem ${(task.memory.toMega() * 0.8) as long}M" : ''
    def alignment = write_align  ? "-A ${prefix}.sto.gz"             : ''
    def target    = write_target ? "--tblout ${prefix}.tbl.gz"       : ''
    def domain    = write_domain ? "--domtblout ${prefix}.domtbl.gz" : ''
    """
    hmmjit search \\
        ${args} \\
        --cpu ${task.cpus} \\
        ${memory} \\
        -o ${prefix}.txt.gz \\
        ${alignment} \\
        ${target} \\
        ${domain} \\
        ${hmmfile} \\
        ${seqdb}
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    echo "" | gzip > ${prefix}.txt.gz
    ${write_align  ? "echo '' | gzip > ${prefix}.sto.gz"    : ''}
    ${write_target ? "echo '' | gzip > ${prefix}.tbl.gz"    : ''}
    ${write_domain ? "echo '' | gzip > ${prefix}.domtbl.gz" : ''}
    """
}
