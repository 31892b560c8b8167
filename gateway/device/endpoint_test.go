package device

import (
	"errors"
	"strings"
	"testing"
)

// TestEndpoint checks which endpoints belong to push services.
func TestEndpoint(t *testing.T) {
	others := []string{"push.example.com", "192.0.2.7", "[2001:db8::1]"}
	for endpoint, want := range map[string]bool{
		"https://fcm.googleapis.com/fcm/send/x":                            true,
		"https://updates.push.services.mozilla.com/w/x":                    true,
		"https://wns2-by3p.notify.windows.com/w/?token":                    true,
		"https://FCM.googleapis.com:443/x":                                 true,
		"https://a.push.example.com:8443/x":                                true,
		"https://192.0.2.7/x":                                              true,
		"https://[2001:db8::1]:8443/x":                                     true,
		"https://1.192.0.2.7/x":                                            false,
		"https://[2001:db8::2]/x":                                          false,
		"https://googleapis.com/x":                                         false,
		"https://xfcm.googleapis.com/x":                                    false,
		"https://fcm.googleapis.com:22/x":                                  false,
		"https://fcm.googleapis.com./x":                                    false,
		"https://fcm.googleapis.com.evil.example/x":                        false,
		"https://fcm.googleapis.com@evil.example/x":                        false,
		"https://evil.example/fcm.googleapis.com":                          false,
		"https://evil.example#fcm.googleapis.com":                          false,
		"https://evil.example\\fcm.googleapis.com/x":                       false,
		"https://evil.example?.push.apple.com":                             false,
		"https://fcm.googleapis.com/" + strings.Repeat("x", maxEndpoint):   false,
		"https://fcm.googleapis.com/" + strings.Repeat("x", maxEndpoint/2): true,
	} {
		if err := checkEndpoint(endpoint, others); (err == nil) != want || err != nil && !errors.Is(err, ErrEndpoint) {
			t.Errorf("%.80s: %v", endpoint, err)
		}
	}
}

func TestHost(t *testing.T) {
	for host, want := range map[string]bool{
		"push.example.com": true, "localhost": true, "192.0.2.7": true, "[2001:db8::1]": true,
		"": false, "https://push.example.com": false, "push.example.com:443": false, "*.example.com": false, "push.example.com.": false,
		"push.example.com/x": false, "jo@push.example.com": false, "{env.HOST}": false, "a b": false, "2001:db8::1": false,
	} {
		if err := CheckHost(host); (err == nil) != want {
			t.Errorf("%q: %v", host, err)
		}
	}
}
