package services

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

func TestSMSNumbers(t *testing.T) {
	for _, c := range []struct {
		read     func(string) (string, error)
		in, want string
	}{
		{smsPlus, "+1 (555) 123-4567", "+15551234567"},
		{smsPlus, "15551234567", "+15551234567"},
		{smsPlus, "555", ""},
		{smsAsWritten(10), "+15551234567", "+15551234567"},
		{smsAsWritten(10), "15551234567", "15551234567"},
		{smsAsWritten(10), "155512345", ""},
		{smsAsWritten(9), "155512345", "155512345"},
		{smsAsWritten(9), "155512345678901", ""},
		{smsCode, "12345", "12345"},
		{smsCode, "123456", "123456"},
		{smsCode, "1234567", ""},
		{smsCode, "+15551234567", "+15551234567"},
		{smsCode, "nobody", ""},
	} {
		got, err := c.read(c.in)
		if err != nil {
			got = ""
		}
		if got != c.want {
			t.Errorf("%q is read as %q, want %q", c.in, got, c.want)
		}
	}
}

func TestSMSUnicode(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "Disk at 91% on host-7\r\n": false, "Ärger für 5 €: [a] {b} ~ ^ | \\": false, "Ω Δ à ñ Ç": false,
		"façade": true, "naïve": true, "“quoted”": true, "диск": true, "漢字": true, "😀": true, "`code`\tb": false,
	} {
		if got := smsUnicode(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestSMSBatch sends to more numbers than fit in one request. Each number gets the
// message once, with batch in as few requests as possible.
func TestSMSBatch(t *testing.T) {
	var numbers []string
	for i := range 50 {
		numbers = append(numbers, fmt.Sprintf("+%d", 15550000000+i))
	}
	for query, want := range map[string][]int{"": slices.Repeat([]int{1}, 50), "&batch=yes": {10, 20, 20}} {
		r := &servicetest.Recorder{}
		result, err := r.Deliver("plivo://"+strings.Join(numbers, "/")+"?id=MAXXXXXXXXXXXXXXXXXX&from=15557654321"+
			"&token=abcdefghijklmnopqrstuvwxyz0123456789abcd"+query, servicetest.Message(t, "plain"))
		if err != nil || result.Err != nil {
			t.Fatal(err, result.Err)
		}
		var sizes []int
		var sent []string
		for _, request := range r.Requests {
			_, to, _ := strings.Cut(request, `"dst": "`)
			to, _, _ = strings.Cut(to, `"`)
			group := strings.Split(to, "<")
			sizes, sent = append(sizes, len(group)), append(sent, group...)
		}
		slices.Sort(sizes)
		slices.Sort(sent)
		if !slices.Equal(sizes, want) || !slices.Equal(sent, numbers) {
			t.Errorf("%q: requests for %v numbers, want %v; in all %v", query, sizes, want, sent)
		}
	}
}

// If all targets are invalid, some services send the message to the sender instead,
// for compatibility; the others send nothing.
func TestSMSInvalidTargets(t *testing.T) {
	for address, sent := range map[string]int{
		"bulkvs://u:p@15557654321/123":         0,
		"httpsms://k3y@15557654321/123":        0,
		"vonage://k3y:s3c@15557654321/123":     1,
		"sinch://abc:def@15557654321/123":      1,
		"twilio://AC01:t0ken@15557654321/w:12": 1,
	} {
		r := &servicetest.Recorder{}
		_, _ = r.Deliver(address, servicetest.Message(t, "plain"))
		if len(r.Requests) != sent {
			t.Errorf("%s: %d requests, want %d", address, len(r.Requests), sent)
		}
	}
}
