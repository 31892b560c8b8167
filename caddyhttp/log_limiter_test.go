package caddyhttp

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a logLimiter
		var told []int
		tell := func(n int) { told = append(told, n) }
		for range 5 {
			a.add(1, tell)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		a.add(2, tell)
		time.Sleep(time.Hour)
		synctest.Wait()
		a.add(1, tell)
		time.Sleep(time.Hour)
		synctest.Wait()
		if fmt.Sprint(told) != "[1 6 1]" {
			t.Errorf("told %v", told)
		}
	})
}
