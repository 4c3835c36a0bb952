package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestAWSSettingsAreDocumented checks that docs/aws.md has a row for each flag of the provider, with its environment
// variable and its default, and no row for a flag that does not exist.
func TestAWSSettingsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/aws.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 6 && strings.HasPrefix(cells[1], " `--") {
			rows[strings.Trim(cells[1], " `")] = []string{strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])}
		}
	}
	var o awsOptions
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		row, found := rows["--"+f.Name]
		delete(rows, "--"+f.Name)
		variable := "`" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")) + "`"
		value := strings.TrimSuffix(f.DefValue, "0s")
		if f.Name == "cluster-name" {
			value = "required"
		}
		switch {
		case !found:
			t.Errorf("--%s has no row", f.Name)
		case row[0] != variable || row[1] != value:
			t.Errorf("--%s: the row has %v, want %s and %q", f.Name, row, variable, value)
		}
	})
	for name := range rows {
		t.Errorf("%s has a row and is not a flag", name)
	}
}

// TestAWSFlagsWithoutEffect checks that docs/aws-comparison.md lists the flags that say so themselves.
func TestAWSFlagsWithoutEffect(t *testing.T) {
	text, err := os.ReadFile("../../docs/aws-comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\nAccepted without effect yet: ")
	list, _, _ = strings.Cut(list, "([")
	var o awsOptions
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if strings.Contains(f.Usage, "not supported yet") && !strings.Contains(list, "`--"+f.Name+"`") {
			t.Errorf("--%s has no effect yet, and docs/aws-comparison.md does not say so", f.Name)
		}
	})
}
