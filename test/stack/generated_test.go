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

	"github.com/karpenter-go/karpenter/internal/cloud/aws"
)

// part is a group of statements with one purpose, which becomes a managed policy.
type part struct {
	name, about string
	sids        []string
}

// parts groups the statements of the default policy.
var parts = []part{
	{"NodeLifecycle", "making, tagging and ending instances", []string{"LaunchFromWhatIsThere", "LaunchByOwnTemplates", "MakeOnlyWhatIsTagged",
		"TagWhatIsBeingMade", "NameOwnInstances", "EndOwnInstancesAndTemplates"}},
	{"IAMIntegration", "the node role and its instance profiles", []string{"HandTheNodeRoleToInstances", "MakeTaggedInstanceProfiles", "ChangeOwnInstanceProfiles",
		"ReadInstanceProfiles", "LookForTheRoleOfSpot", "ListInstanceProfiles"}},
	{"Interruption", "the queue of notices", []string{"HearOfInterruptions"}},
	{"Discovery", "what there is, and what it costs", []string{"ReadEC2", "ReadTheCluster", "ReadImageIDs", "ReadPrices"}},
}

// optional returns the features that the stacks allow on request, as parts, in the order of the code.
func optional() []part {
	var all []part
	for _, f := range aws.Features() {
		if f.Statement != "" {
			all = append(all, part{f.Statement, f.Name + ": " + f.Setting, []string{f.Statement}})
		}
	}
	return all
}

// TestGenerated compares the parts of the template and the module that this test generates with the documented
// policies.
func TestGenerated(t *testing.T) {
	statements := rawStatements(t)
	for name, want := range map[string]string{
		moduleDir + "/policy.json":          string(readFile(t, policyFile)),
		moduleDir + "/policy-optional.json": string(readFile(t, optionalFile)),
		moduleDir + "/controller.tf": within(t, moduleDir+"/controller.tf",
			map[string]string{"parts": modulePart(parts), "optional": modulePart(optional())}),
		moduleDir + "/variables.tf": within(t, moduleDir+"/variables.tf", map[string]string{"features": moduleFeatures()}),
		cfnFile: within(t, cfnFile, map[string]string{
			"parameters": templateSwitches(), "conditions": templateConditions(), "attachments": templateAttachments(),
			"policies": templatePart(t, statements, slices.Concat(parts, optional()))}),
	} {
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, string(readFile(t, name))); diff != "" {
			t.Errorf("%s differs from %s (go test ./stack -run TestGenerated -update), -policy +file:\n%s", name, policyFile, diff)
		}
	}
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return content
}

// rawStatements returns the unchanged statements of the policies by id; each belongs to one part.
func rawStatements(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	bySid, of := map[string]json.RawMessage{}, map[string]int{}
	for _, file := range []string{policyFile, optionalFile} {
		var read struct{ Statement []json.RawMessage }
		if err := json.Unmarshal(readFile(t, file), &read); err != nil {
			t.Fatal(err)
		}
		for _, raw := range read.Statement {
			var s struct{ Sid string }
			if err := json.Unmarshal(raw, &s); err != nil {
				t.Fatal(err)
			}
			bySid[s.Sid] = raw
		}
	}
	for _, part := range slices.Concat(parts, optional()) {
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
		t.Errorf("the parts have %d statements, the policies %d", len(of), len(bySid))
	}
	return bySid
}

// within returns a file with the text between the marks of each name replaced.
func within(t *testing.T, name string, made map[string]string) string {
	t.Helper()
	content := string(readFile(t, name))
	for mark, part := range made {
		between := regexp.MustCompile(`(?s)( *# generated: begin ` + mark + `\n).*?( *# generated: end\n)`)
		found := between.FindStringSubmatch(content)
		if found == nil {
			t.Fatalf("%s has no marks of the generated part %s", name, mark)
		}
		content = between.ReplaceAllLiteralString(content, found[1]+part+found[2])
	}
	return content
}

func modulePart(parts []part) string {
	var b strings.Builder
	longest := 0
	for _, part := range parts {
		longest = max(longest, len(part.name))
	}
	for _, part := range parts {
		fmt.Fprintf(&b, "    %-*s = [\"%s\"] # %s\n", longest, part.name, strings.Join(part.sids, `", "`), part.about)
	}
	return b.String()
}

// moduleFeatures returns the validation of the variable features, which may refer to that variable only.
func moduleFeatures() string {
	var all []string
	for _, part := range optional() {
		all = append(all, part.name)
	}
	quoted := ""
	if len(all) > 0 {
		quoted = `"` + strings.Join(all, `", "`) + `"`
	}
	return fmt.Sprintf("    condition     = length(setsubtract(var.features, [%s])) == 0\n    error_message = \"features are of: %s.\"\n",
		quoted, strings.Join(all, ", "))
}

// templateSwitches returns a parameter for each optional feature.
func templateSwitches() string {
	var b strings.Builder
	for _, part := range optional() {
		fmt.Fprintf(&b, "  %s:\n    Type: String\n    AllowedValues: [\"false\", \"true\"]\n    Default: \"false\"\n    Description: %q\n",
			part.name, "Whether the controller may use "+part.about+".")
	}
	return b.String()
}

func templateConditions() string {
	var b strings.Builder
	for _, part := range optional() {
		fmt.Fprintf(&b, "  With%s: !Equals [!Ref %[1]s, \"true\"]\n", part.name)
	}
	return b.String()
}

func templateAttachments() string {
	var b strings.Builder
	for _, part := range optional() {
		fmt.Fprintf(&b, "        - !If [With%s, !Ref KarpenterController%[1]sPolicy, !Ref \"AWS::NoValue\"]\n", part.name)
	}
	return b.String()
}

// names maps the policy's variables to CloudFormation's.
var names = strings.NewReplacer("${PARTITION}", "${AWS::Partition}", "${REGION}", "${AWS::Region}", "${ACCOUNT}", "${AWS::AccountId}",
	"${CLUSTER}", "${ClusterName}", "${NODE_ROLE}", "${KarpenterNodeRole}", "${QUEUE}", "${KarpenterInterruptionQueue.QueueName}")

func templatePart(t *testing.T, statements map[string]json.RawMessage, of []part) string {
	t.Helper()
	var b strings.Builder
	for i, part := range of {
		only := ""
		if i >= len(parts) {
			only = "    Condition: With" + part.name + "\n"
		}
		fmt.Fprintf(&b, "  KarpenterController%sPolicy:\n    Type: AWS::IAM::ManagedPolicy\n%s    Properties:\n      "+
			"Description: %q\n      PolicyDocument: !Sub |\n",
			part.name, only, "karpenter: "+part.about)
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
