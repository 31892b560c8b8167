package source

func init() {
	register(Format{
		Name:    "proxmox",
		Program: "Proxmox VE and Backup Server",
		Doc:     "https://pve.proxmox.com/pve-docs/chapter-notifications.html",
		Templates: Templates{
			Title: `{{ default "Proxmox" .title }}`,
			Body:  `{{ .message }}`,
			Type:  `{{ .severity }}`,
		},
	})
}
