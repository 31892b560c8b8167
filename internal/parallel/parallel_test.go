package parallel

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// TestEach checks that all calls below the lowest number with an error are
// made, and that this error is returned.
func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, batch, batch + 1, 5000} {
		for _, fail := range [][]int{nil, {0}, {n - 1}, {n / 2, n/2 + 1, n - 1}} {
			want, fails := n, make([]bool, n+1)
			for _, i := range fail {
				if i >= 0 && i < n {
					want, fails[i] = min(want, i), true
				}
			}
			called := make([]atomic.Bool, n)
			failed, err := Each(n, func(i int) error {
				if called[i].Swap(true) {
					t.Errorf("n=%d, fail=%v: %d is called twice", n, fail, i)
				}
				if fails[i] {
					return fmt.Errorf("error %d", i)
				}
				return nil
			})
			switch {
			case failed != want, want == n && err != nil, want < n && (err == nil || err.Error() != fmt.Sprint("error ", want)):
				t.Errorf("n=%d, fail=%v: %d, %v", n, fail, failed, err)
			}
			for i := range min(want+1, n) {
				if !called[i].Load() {
					t.Errorf("n=%d, fail=%v: %d is not called", n, fail, i)
				}
			}
		}
	}
}

// TestEachPanic checks that a panic reaches the caller, where net/http
// recovers it during a reload.
func TestEachPanic(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "broken 70") {
			t.Errorf("the panic is %v", p)
		}
	}()
	_, _ = Each(100, func(i int) error {
		if i == 70 {
			panic("broken 70")
		}
		return nil
	})
	t.Error("Each returned")
}
