package userdata

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// EC2Launch reads tags in any case, and settings such as <persist> beside a script in tags only.
func TestWindowsCustom(t *testing.T) {
	type got struct{ Script, Around, Err string }
	for _, test := range []struct {
		custom string
		want   got
	}{
		{"echo a", got{Script: "echo a"}},
		{"<PowerShell>\necho a\n</POWERSHELL>\n<persist>true</persist>", got{Script: "echo a", Around: "<persist>true</persist>"}},
		{"<script>\ndir\n</script>\n<powershell>\necho '<persist>'\n</powershell>",
			got{Script: "echo '<persist>'", Around: "<script>\ndir\n</script>"}},
		{"echo a\n<Persist>true</Persist>", got{Err: "spec.userData: has <Persist> without <powershell>"}},
		{"<script>\ndir\n</script>", got{Err: "spec.userData: has <script> without <powershell>"}},
		{"<powershell>echo a</powershell><Powershell>echo b</powershell>",
			got{Err: "spec.userData: has a <powershell> without its own </powershell>, or two scripts"}},
	} {
		script, around, err := Request{Family: awsv1.FamilyWindows2022, Custom: test.custom}.windowsCustom()
		is := got{Script: script, Around: around}
		if invalid, _ := err.(*InvalidError); invalid != nil {
			is.Err = invalid.Field + ": " + invalid.Problem
		}
		if diff := cmp.Diff(test.want, is); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.custom, diff)
		}
	}
}
