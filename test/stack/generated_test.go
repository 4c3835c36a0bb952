package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parts groups the statements of the policy by purpose; each part becomes a managed policy.
var parts = []struct {
	name, about string
	sids        []string
}{
	{"NodeLifecycle", "making, tagging and ending instances", []string{"LaunchFromWhatIsThere", "LaunchByOwnTemplates", "MakeOnlyWhatIsTagged",
		"TagWhatIsBeingMade", "NameOwnInstances", "EndOwnInstancesAndTemplates"}},
	{"IAMIntegration", "the node role and its instance profiles", []string{"HandTheNodeRoleToInstances", "MakeTaggedInstanceProfiles", "ChangeOwnInstanceProfiles",
		"ReadInstanceProfiles", "LookForTheRoleOfSpot", "ListInstanceProfiles"}},
	{"Interruption", "the queue of notices", []string{"HearOfInterruptions"}},
	{"Discovery", "what there is, and what it costs", []string{"ReadEC2", "ReadTheCluster", "ReadImageIDs", "ReadPrices"}},
}

var between = regexp.MustCompile(`(?s)( *# generated: begin\n).*?( *# generated: end\n)`)

// TestGenerated compares the parts of the template and the module that this test generates with the documented
// policy.
func TestGenerated(t *testing.T) {
	text, err := os.ReadFile(policyFile)
	if err != nil {
		t.Fatal(err)
	}
	statements := rawStatements(t, text)
	for name, want := range map[string]string{
		moduleDir + "/policy.json":   string(text),
		moduleDir + "/controller.tf": within(t, moduleDir+"/controller.tf", modulePart()),
		cfnFile:                      within(t, cfnFile, templatePart(t, statements)),
	} {
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(have)); diff != "" {
			t.Errorf("%s differs from %s (go test ./stack -run TestGenerated -update), -policy +file:\n%s", name, policyFile, diff)
		}
	}
}

// rawStatements returns the unchanged statements of the policy by id; each belongs to one part.
func rawStatements(t *testing.T, policy []byte) map[string]json.RawMessage {
	t.Helper()
	var read struct{ Statement []json.RawMessage }
	if err := json.Unmarshal(policy, &read); err != nil {
		t.Fatal(err)
	}
	bySid, of := map[string]json.RawMessage{}, map[string]int{}
	for _, raw := range read.Statement {
		var s struct{ Sid string }
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		bySid[s.Sid] = raw
	}
	for _, part := range parts {
		for _, sid := range part.sids {
			of[sid]++
		}
	}
	for sid := range bySid {
		if of[sid] != 1 {
			t.Errorf("the statement %s belongs to %d parts, want one", sid, of[sid])
		}
	}
	if len(of) != len(bySid) {
		t.Errorf("the parts have %d statements, the policy %d", len(of), len(bySid))
	}
	return bySid
}

// within returns a file with the text between the marks replaced.
func within(t *testing.T, name, made string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	found := between.FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no marks of the generated part", name)
	}
	return between.ReplaceAllLiteralString(string(text), string(found[1])+made+string(found[2]))
}

func modulePart() string {
	var b strings.Builder
	b.WriteString("  parts = {\n")
	longest := 0
	for _, part := range parts {
		longest = max(longest, len(part.name))
	}
	for _, part := range slices.Clone(parts) {
		fmt.Fprintf(&b, "    %-*s = [\"%s\"] # %s\n", longest, part.name, strings.Join(part.sids, `", "`), part.about)
	}
	b.WriteString("  }\n")
	return b.String()
}

// names maps the policy's variables to CloudFormation's.
var names = strings.NewReplacer("${PARTITION}", "${AWS::Partition}", "${REGION}", "${AWS::Region}", "${ACCOUNT}", "${AWS::AccountId}",
	"${CLUSTER}", "${ClusterName}", "${NODE_ROLE}", "${KarpenterNodeRole}", "${QUEUE}", "${KarpenterInterruptionQueue.QueueName}")

func templatePart(t *testing.T, statements map[string]json.RawMessage) string {
	t.Helper()
	var b strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&b, "  KarpenterController%sPolicy:\n    Type: AWS::IAM::ManagedPolicy\n    Properties:\n      Description: %q\n      PolicyDocument: !Sub |\n",
			part.name, "karpenter: "+part.about)
		var of []json.RawMessage
		for _, sid := range part.sids {
			of = append(of, statements[sid])
		}
		// An encoder is used, because Marshal escapes & and <.
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("        ", "  ")
		if err := encoder.Encode(struct {
			Version   string
			Statement []json.RawMessage
		}{"2012-10-17", of}); err != nil {
			t.Fatal(err)
		}
		b.WriteString("        " + names.Replace(text.String()))
	}
	return b.String()
}
