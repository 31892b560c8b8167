package outbox

// Remembered returns how many destinations the log knows as failing.
func (l *FailureLog) Remembered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}
