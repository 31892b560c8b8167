package source

// The built-in formats of tests. Package programs, which has the real ones, cannot be imported here,
// because it imports this package.
func init() {
	Register(Format{
		Name: "github", Program: "GitHub", Has: []string{"repository"}, Templates: Templates{Title: `{{ .repository.full_name }}`},
		Field: "payload",
	})
	Register(Format{
		Name: "proxmox", Program: "Proxmox", Has: []string{"message"},
		Templates: Templates{Title: `{{ .title }}`, Body: `{{ .message }}`},
	})
	Register(Format{
		Name: "sns", Program: "Amazon SNS", Has: []string{"TopicArn"}, Templates: Templates{Body: `{{ .Message }}`},
		Scheme: SchemeSNS, Signed: true,
	})
}
