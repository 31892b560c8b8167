package postgres

// counters is the number of rows of notify_queue_counts. Each connection changes one of
// them, and locks it until its commit is on the disk. So there are more rows than the
// gateways have connections together, for these to have rows of their own.
const counters = 512

// counts is what a transaction adds to the counts of the store. Each count is the sum of a column
// of notify_queue_counts.
//
// A transaction locks its row last, together with its commit: no step that waits for a lock or for
// this program follows. It locks one row only, so that no two wait for each other.
type counts struct {
	waiting, dead        int64 // jobs
	bytes                int64 // of messages that wait
	kept                 int64 // bytes of messages that do not wait
	records, recordBytes int64
}

func (n *counts) add(m counts) {
	n.waiting += m.waiting
	n.dead += m.dead
	n.bytes += m.bytes
	n.kept += m.kept
	n.records += m.records
	n.recordBytes += m.recordBytes
}

// calls returns the statement that adds to a row of counts, unless it would add nothing.
// Only a commit follows it.
func (n counts) calls(c *conn) []call {
	if n == (counts{}) {
		return nil
	}
	return []call{{addCounts, []any{c.counter, n.waiting, n.dead, n.bytes, n.kept, n.records, n.recordBytes}}}
}

const addCounts = `UPDATE notify_queue_counts SET waiting = waiting + $2::BIGINT, dead = dead + $3::BIGINT, bytes = bytes + $4::BIGINT,
		kept = kept + $5::BIGINT, records = records + $6::BIGINT, record_bytes = record_bytes + $7::BIGINT
	WHERE shard = $1`
