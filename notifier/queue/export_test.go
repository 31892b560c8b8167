package queue

import "time"

// SetClock makes q tell the time with these functions. Call it before Start.
func (q *Queue) SetClock(now func() time.Time, runs func() time.Duration) { q.clock = clock{now, runs} }
