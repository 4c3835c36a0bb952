package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// sides returns the files of both sides of --diff. Those of -f are on both sides if OLD and NEW are given.
func (s *simulation) sides(arguments []string) (old, now []string, err error) {
	switch {
	case s.disrupt || s.capture != "":
		return nil, nil, cli.UsageErrorf("--diff plans removals too, and is not captured: want no --disrupt and no --capture")
	case len(arguments) == 2:
		return arguments[:1], arguments[1:], nil
	case len(arguments) > 0 || !s.source.Live || len(s.source.Paths) == 0:
		return nil, nil, cli.UsageErrorf("%d files or folders to compare (--diff, which -o markdown implies), "+
			"want two, OLD and NEW, or none with --live and -f NEW",
			len(arguments))
	}
	now, s.source.Paths = s.source.Paths, nil
	return nil, now, nil
}

// runDiff compares two versions of manifests.
func (s *simulation) runDiff(command *cobra.Command, arguments []string) error {
	old, now, err := s.sides(arguments)
	if err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	s.source.Stdin = command.InOrStdin()
	before, after, err := s.source.ReadBoth(command.Context(), s.policy, old, now)
	if err != nil {
		return err
	}
	progress := command.ErrOrStderr()
	if len(after.Problems) > 0 && after.Empty() {
		return unreadable(after.Problems, progress)
	}
	for _, note := range after.Notes() {
		fmt.Fprintln(progress, note)
	}
	a, err := offline.Compare(command.Context(), before, after, &s.policy, &s.allowed)
	if err != nil {
		return err
	}
	if err := s.print(a, command.OutOrStdout()); err != nil {
		return err
	}
	if err := unreadable(after.Problems, progress); err != nil {
		return err
	}
	if s.exitCode && len(a.Violations) > 0 {
		messages := make([]string, len(a.Violations))
		for i, v := range a.Violations {
			messages[i] = v.Message
		}
		return fmt.Errorf("not allowed: %s", strings.Join(messages, "; "))
	}
	return nil
}
