package gatewaytest

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// InBubble runs f in a bubble, where waiting takes no time and the clock begins on Saturday,
// 2000-01-01 at midnight UTC. Time stands still while a goroutine of the bubble reads from a
// connection, so the servers of a test start outside and close connections after each answer, as
// [Pager] does.
func InBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // so that idle goroutines of the sender end
		f(t)
	})
}

// InBubbleWithPager runs f in a bubble beside other tests, with a pager that answers 200 and a folder
// for a queue.
func InBubbleWithPager(t *testing.T, f func(t *testing.T, p *Pager, dir string)) {
	t.Helper()
	t.Parallel()
	p, dir := NewPager(t, http.StatusOK), t.TempDir()
	InBubble(t, func(t *testing.T) { f(t, p, dir) })
}

// Until waits until a time of the bubble's clock, such as 2000-01-01 08:00:00.
func Until(t testing.TB, at string) {
	t.Helper()
	end, err := time.Parse(time.DateTime, at)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(end))
	synctest.Wait()
}

// Eventually waits until a condition holds.
func Eventually(t testing.TB, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition does not hold after the timeout")
		}
	}
}
