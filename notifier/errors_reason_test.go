package notifier

import "testing"

// TestReason checks that an error of a service is a sentence where the answer has one.
func TestReason(t *testing.T) {
	for _, tt := range []struct {
		code       int
		body, want string
	}{
		{404, `{"message": "Unknown Webhook", "code": 10015}`, "the service answered 404 Not Found: Unknown Webhook"},
		{401, `{"ok":false,"error_code":401,"description":"Unauthorized"}`, "the service answered 401 Unauthorized"},
		{
			400, `{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}`,
			"the service answered 400 Bad Request: chat not found",
		},
		{
			400, `{"user":"invalid","errors":["user identifier is invalid"],"status":0}`,
			"the service answered 400 Bad Request: user identifier is invalid",
		},
		{
			403, `{"error":{"code":403,"message":"The caller has no permission"}}`,
			"the service answered 403 Forbidden: The caller has no permission",
		},
		{401, `{"error":"Unauthorized","errorDescription":"it is no token"}`, "the service answered 401 Unauthorized: it is no token"},
		{
			404, `{"status":404,"error":"Not Found","response":{"message":["The main instance does not exist"]}}`,
			"the service answered 404 Not Found: The main instance does not exist",
		},
		{401, `Unauthorized`, "the service answered 401 Unauthorized"},
		{422, `{"errors":["a","b"]}`, `the service answered 422 Unprocessable Entity: {"errors":["a","b"]}`},
		{422, `{"errors":{"body":["too long"]}}`, `the service answered 422 Unprocessable Entity: {"errors":{"body":["too long"]}}`},
		{500, `{"message": "cut`, `the service answered 500 Internal Server Error: {"message": "cut`},
		{500, `oh`, "the service answered 500 Internal Server Error: oh"},
		{500, ``, "the service answered 500 Internal Server Error"},
		{599, `{"message":""}`, `the service answered 599: {"message":""}`},
	} {
		if got := (&StatusError{Code: tt.code, Body: tt.body}).Error(); got != tt.want {
			t.Errorf("%d %s: %s; want %s", tt.code, tt.body, got, tt.want)
		}
	}
}
