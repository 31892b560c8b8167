package services

import (
	"crypto/sha256"
	"testing"
	"time"
)

// This is the case post-x-www-form-urlencoded of the test suite that AWS published
// for Signature Version 4.
func TestAWSSignature(t *testing.T) {
	a := aws{id: "AKIDEXAMPLE", secret: []string{"wJalrXUtnFEMI", "K7MDENG+bPxRfiCYEXAMPLEKEY"}, region: "us-east-1"}
	now := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	digest := sha256.Sum256([]byte("Param1=value1"))
	got := a.sign(now, "service", "example.amazonaws.com", "application/x-www-form-urlencoded", digest[:])
	want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, " +
		"SignedHeaders=content-type;host;x-amz-date, " +
		"Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"
	if got != want {
		t.Errorf("signed as\n%s, want\n%s", got, want)
	}
}
