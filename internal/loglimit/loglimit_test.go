package loglimit_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/loglimit"
)

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a loglimit.Limiter
		var reports []int
		report := func(n int) { reports = append(reports, n) }
		for range 5 {
			a.Add(1, report)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		a.Add(2, report)
		time.Sleep(time.Hour)
		synctest.Wait()
		a.Add(1, report)
		time.Sleep(time.Hour)
		synctest.Wait()
		if fmt.Sprint(reports) != "[1 6 1]" {
			t.Errorf("reports: %v, want [1 6 1]", reports)
		}
	})
}
