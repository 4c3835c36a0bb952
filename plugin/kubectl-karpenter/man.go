package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManCommand returns the command that writes the manual pages. Packagers run it; help texts do not list it.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Hidden: true,
		Short:  "Write the manual pages into a folder",
		Long: `Writes one manual page of section 1 for each command into the folder, which is created if it does not exist. The pages
have the date in SOURCE_DATE_EPOCH (seconds since 1970), else that of today.`,
		Args: oneName("the folder"),
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := os.MkdirAll(arguments[0], 0o755); err != nil { //nolint:gosec // manual pages are read by all users
				return fmt.Errorf("creating the folder of the manual pages: %w", err)
			}
			root := command.Root()
			root.DisableAutoGenTag = true
			header := doc.GenManHeader{Section: "1", Source: root.Name() + " " + root.Version, Manual: "Karpenter"}
			if err := doc.GenManTree(root, &header, arguments[0]); err != nil {
				return fmt.Errorf("writing the manual pages: %w", err)
			}
			return nil
		},
	}
}
