package egress_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

func ExampleNewPolicy() {
	policy, err := egress.NewPolicy([]string{"10.0.0.0/8"}, []string{"10.1.0.0/16"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, address := range []string{"192.0.2.1", "10.0.0.1", "10.1.0.1", "127.0.0.1", "1.1.1.1"} {
		fmt.Println(address, policy.CheckAddr(netip.MustParseAddr(address)) == nil)
	}
	// Output:
	// 192.0.2.1 false
	// 10.0.0.1 true
	// 10.1.0.1 false
	// 127.0.0.1 false
	// 1.1.1.1 true
}

func ExamplePolicy_CheckHost() {
	var policy egress.Policy
	for _, host := range []string{"example.com", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]:80"} {
		fmt.Println(host, policy.CheckHost(host) == nil)
	}
	// Output:
	// example.com true
	// localhost false
	// 2130706433 false
	// 0x7f.1 false
	// [::ffff:127.0.0.1]:80 false
}

func ExamplePool_Do() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	pool := egress.NewPool("example/1.0")
	defer pool.Close()

	r, err := http.NewRequest(http.MethodPost, server.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = pool.Do(r, egress.Options{Policy: &egress.Policy{}})
	blocked, ok := errors.AsType[*egress.BlockedError](err)
	fmt.Println(ok, blocked.Rule)

	resp, err := pool.Do(r, egress.Options{}) // no policy
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output:
	// true loopback (127.0.0.0/8)
	// 404 Not Found
}
