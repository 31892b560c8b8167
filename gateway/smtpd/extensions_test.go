package smtpd

import (
	"strings"
	"testing"
)

// TestExtensions checks which extensions the server offers, and that it refuses the parameters of
// others, so that no client believes that they have an effect.
func TestExtensions(t *testing.T) {
	answers, _, _ := converse(t, "EHLO x\r\nLHLO x\r\nQUIT\r\n")
	const offered = "250-Hello x\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250-CHUNKING\r\n250-SMTPUTF8\r\n" +
		"250-SIZE 1048576\r\n250 LIMITS RCPTMAX=10\r\n500 5.5.1 This is not a LMTP server\r\n"
	if !strings.HasPrefix(answers, "220 test ESMTP Service Ready\r\n"+offered) {
		t.Errorf("the answers are %q", answers)
	}
	for _, test := range []struct{ command, want string }{
		{"MAIL FROM:<a@x> SIZE=10 BODY=8BITMIME SMTPUTF8 AUTH=<>", "250 2.0.0 Roger, accepting mail from <a@x>"},
		{"MAIL FROM:<a@x> SIZE=9999999", "552 5.3.4 Max message size exceeded"},
		{"MAIL FROM:<a@x> BODY=BINARYMIME", "504 5.5.4 BINARYMIME is not implemented"},
		{"MAIL FROM:<a@x> REQUIRETLS", "504 5.5.4 REQUIRETLS is not implemented"},
		{"MAIL FROM:<a@x> ret=FULL", "504 5.5.4 RET is not implemented"},
		{"MAIL FROM:<a@x> ENVID=1", "504 5.5.4 ENVID is not implemented"},
		{"MAIL FROM:<a@x> OTHER=1", "500 5.5.4 Unknown MAIL FROM argument"},
		{"RCPT TO:<k@x> NOTIFY=NEVER", "504 5.5.4 NOTIFY is not implemented"},
		{"RCPT TO:<k@x> ORCPT=rfc822;a@x", "504 5.5.4 ORCPT is not implemented"},
		{"RCPT TO:<k@x> RRVS=2026-01-01T00:00:00Z", "504 5.5.4 RRVS is not implemented"},
		{"RCPT TO:<k@x> BY=1;R", "504 5.5.4 DELIVERBY is not implemented"},
		{"RCPT TO:<k@x> MT-PRIORITY=1", "504 5.5.4 MT-PRIORITY is not implemented"},
		{"RCPT TO:<k@x> OTHER=1", "500 5.5.4 Unknown RCPT TO argument"},
	} {
		commands := "EHLO x\r\n"
		if strings.HasPrefix(test.command, "RCPT") {
			commands += "MAIL FROM:<a@x>\r\n"
		}
		if answers, _, _ := converse(t, commands+test.command+"\r\nQUIT\r\n"); !strings.HasSuffix(answers,
			"\r\n"+test.want+"\r\n221 2.0.0 Bye\r\n") {
			t.Errorf("%s: the answers are %q, want %s", test.command, answers, test.want)
		}
	}
}
