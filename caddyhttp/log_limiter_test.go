package caddyhttp

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l logLimiter
		var reported []int
		report := func(n int) { reported = append(reported, n) }
		for range 5 {
			l.add(1, report)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		l.add(2, report)
		time.Sleep(time.Hour)
		synctest.Wait()
		l.add(1, report)
		time.Sleep(time.Hour)
		synctest.Wait()
		if fmt.Sprint(reported) != "[1 6 1]" {
			t.Errorf("reported %v", reported)
		}
	})
}
