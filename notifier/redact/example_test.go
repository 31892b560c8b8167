package redact_test

import (
	"fmt"

	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

func ExampleMasker_Mask() {
	m := redact.NewMasker([]string{"s3cr/et"})
	fmt.Println(m.Mask("POST /send?token=s3cr%2Fet: 403"))
	fmt.Println(m.Mask(`{"error": "no user s3cr\/et"}`))
	fmt.Println(m.Mask("Authorization: Basic dXNlcjpzM2NyL2V0"))
	// Output:
	// POST /send?token=xxxxx: 403
	// {"error": "no user xxxxx"}
	// Authorization: Basic xxxxx
}
