package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/plugin/cli"
)

// argumentsVariable names an environment variable that makes TestAsProgram run the program with these arguments, one
// per line.
const argumentsVariable = "KARPENTER_TEST_ARGUMENTS"

func TestAsProgram(t *testing.T) {
	arguments, ok := os.LookupEnv(argumentsVariable)
	if !ok {
		t.Skip("other tests run this as a separate process")
	}
	root := newRootCommand()
	root.SetArgs(strings.Split(arguments, "\n"))
	code := cli.Run(t.Context(), root)
	if file := os.Getenv(statusVariable); file != "" {
		status, err := os.ReadFile("/proc/self/status")
		if err == nil {
			err = os.WriteFile(file, status, 0o600)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// statusVariable names an environment variable with the file to which TestAsProgram copies /proc/self/status.
const statusVariable = "KARPENTER_TEST_STATUS"

// program runs the program as a process, and returns its output, its peak resident memory in MiB, and its CPU seconds.
//
// With one processor, the garbage collector has a fixed share of the time. With more, its threads may wait on a busy
// machine while others allocate, and the peak is not what the input costs. The peak is VmHWM
// (https://man7.org/linux/man-pages/man5/proc_pid_status.5.html): that of getrusage is at least the resident memory of
// the process that started it.
func program(t *testing.T, arguments ...string) (output string, peak int64, work float64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "status")
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAsProgram$")
	command.Env = append(os.Environ(), argumentsVariable+"="+strings.Join(arguments, "\n"), statusVariable+"="+file, "GOMAXPROCS=1")
	text, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("karpenter %s: %v\n%s", strings.Join(arguments, " "), err, text)
	}
	status, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	if peak, err = strconv.ParseInt(number, 10, 64); err != nil {
		t.Fatalf("VmHWM of\n%s: %v", status, err)
	}
	state := command.ProcessState
	return string(text), peak >> 10, (state.UserTime() + state.SystemTime()).Seconds()
}

const hostileBase = `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"general"},"spec":{"limits":{"cpu":"2000"},"template":{"spec":{
"nodeClassRef":{"group":"karpenter.kwok.sh","kind":"KWOKNodeClass","name":"default"},"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot","on-demand"]}]}}}}
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"plain","namespace":"other"},"spec":{"containers":[{"name":"a","image":"a","resources":{"requests":{"cpu":"1"}}}]},
"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}
`

// hostilePods returns pods with the given number of node affinity terms each. All terms are different: each has, for
// each key, a NotIn requirement with a unique value.
func hostilePods(pods, terms int, keys ...string) string {
	var text strings.Builder
	for i := range pods {
		var list []any
		for j := range terms {
			var expressions []any
			for _, key := range keys {
				expressions = append(expressions, map[string]any{"key": key, "operator": "NotIn", "values": []string{fmt.Sprintf("x%d-%d", i, j)}})
			}
			list = append(list, map[string]any{"matchExpressions": expressions})
		}
		encoded, err := json.Marshal(list)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&text, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d","namespace":"tenant"},"spec":{"containers":[{"name":"a","image":"a","resources":{"requests":{"cpu":"100m"}}}],
"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":%s}}}},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}
`, i, encoded)
	}
	return text.String()
}

// TestHostileAffinity checks that pods with very many node affinity terms take little memory, whether their terms can
// be merged or not, and that other pods are still placed.
func TestHostileAffinity(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base.json")
	if err := os.WriteFile(base, []byte(hostileBase), 0o600); err != nil {
		t.Fatal(err)
	}
	_, baseline, _ := program(t, "simulate", "-f", base)
	for _, test := range []struct {
		name        string
		pods, terms int
		keys        []string
		most        int64 // MiB beyond the baseline
		placed      bool
	}{
		{"10 pods of 6,000 terms", 10, 6000, []string{"node.kubernetes.io/instance-type"}, 100, true},
		{"300 pods of 300 terms", 300, 300, []string{"node.kubernetes.io/instance-type"}, 200, true},
		{"10 pods of 6,000 terms of two keys", 10, 6000, []string{"node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"}, 100, false},
		{"300 pods of 300 terms of two keys", 300, 300, []string{"node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"}, 200, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pods.json")
			if err := os.WriteFile(file, []byte(hostilePods(test.pods, test.terms, test.keys...)), 0o600); err != nil {
				t.Fatal(err)
			}
			output, peak, _ := program(t, "simulate", "-f", base, "-f", file)
			t.Logf("%d MiB beyond %d MiB", peak-baseline, baseline)
			if peak-baseline > test.most {
				t.Errorf("%d MiB more than for one pod, want at most %d", peak-baseline, test.most)
			}
			if strings.Contains(output, "UNSCHEDULABLE other/plain") {
				t.Errorf("the other pod is unschedulable:\n%s", output)
			}
			if said := strings.Contains(output, "too many alternatives"); said == test.placed {
				t.Errorf("pods were set aside: %t, want %t:\n%.2000s", said, !test.placed, output)
			}
		})
	}
}

// constrainedPods returns pods with the given number of constraints between pods each. constraint is a format with
// three numbers: those of the pod, of the constraint, and of the pod again.
func constrainedPods(pods, constraints int, open, constraint, end string) string {
	var text strings.Builder
	for i := range pods {
		var list []string
		for j := range constraints {
			list = append(list, fmt.Sprintf(constraint, i, j, i))
		}
		fmt.Fprintf(&text, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d","namespace":"tenant"},"spec":{"containers":[{"name":"a","image":"a","resources":{"requests":{"cpu":"100m"}}}],
%s%s%s},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}
`, i, open, strings.Join(list, ","), end)
	}
	return text.String()
}

// hostileAWS is hostileBase with a pool of AWS.
var hostileAWS = strings.NewReplacer("karpenter.kwok.sh", "karpenter.k8s.aws", "KWOKNodeClass", "EC2NodeClass").Replace(hostileBase)

// TestHostileKeys checks that pods with a few topology keys, each with many values in the catalog of AWS, take little
// memory and work, and that other pods are still placed.
func TestHostileKeys(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base.json")
	if err := os.WriteFile(base, []byte(hostileAWS), 0o600); err != nil {
		t.Fatal(err)
	}
	_, baseline, _ := program(t, "simulate", "-f", base)
	const (
		spread = `{"maxSkew":1,"topologyKey":"karpenter.k8s.aws/%s","whenUnsatisfiable":"DoNotSchedule",
			"labelSelector":{"matchLabels":{"app":"x"}}}`
		apart = `{"topologyKey":"karpenter.k8s.aws/%s","namespaceSelector":{},"labelSelector":{}}`
	)
	for _, test := range []struct{ name, open, one, end string }{
		{"spread", `"topologySpreadConstraints":[`, spread, `]`},
		{"anti-affinity over all namespaces", `"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`, apart, `]}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var rules []string
			for _, key := range []string{"instance-family", "instance-memory", "instance-ebs-bandwidth", "instance-network-bandwidth"} {
				rules = append(rules, fmt.Sprintf(test.one, key))
			}
			pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"tenant","labels":{"app":"x"}},
				"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]},
				"spec":{"containers":[{"name":"a","image":"a","resources":{"requests":{"cpu":"100m"}}}],` +
				test.open + strings.Join(rules, ",") + test.end + `}}`
			file := filepath.Join(t.TempDir(), "pods.json")
			if err := os.WriteFile(file, []byte(pod), 0o600); err != nil {
				t.Fatal(err)
			}
			output, peak, work := program(t, "simulate", "-f", base, "-f", file)
			t.Logf("%d MiB beyond %d MiB, %.1f CPU s", peak-baseline, baseline, work)
			if peak-baseline > 200 || work > 30 {
				t.Errorf("%d MiB more than for one pod and %.1f CPU s, want at most 200 and 30", peak-baseline, work)
			}
			if strings.Contains(output, "NO PLACE") {
				t.Errorf("a pod is unschedulable:\n%s", output)
			}
		})
	}
}

// TestHostileConstraints checks that pods with very many constraints between pods take little memory and work, and
// that other pods are still placed. Tolerations cost only the work to read them, whatever their number.
func TestHostileConstraints(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base.json")
	if err := os.WriteFile(base, []byte(hostileBase), 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		spread = `{"maxSkew":1,"topologyKey":"k%d-%d","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"x%d"}}}`
		soft   = `{"weight":1,"podAffinityTerm":{"topologyKey":"topology.kubernetes.io/zone","labelSelector":{"matchLabels":{"app":"x%d-%d-%d"}}}}`
		hard   = `{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"x%d-%d-%d"}}}`
	)
	for _, test := range []struct {
		name              string
		pods, constraints int
		open, one, end    string
		said              string
	}{
		{"1,000 spread constraints over as many keys", 20, 1000, `"topologySpreadConstraints":[`, spread, `]`,
			"too many topology spread constraints"},
		{"2,000 preferred terms of affinity", 20, 2000, `"affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[`,
			soft, `]}}`, "too many topology spread constraints"},
		{"2,000 required terms of affinity", 20, 2000, `"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`,
			hard, `]}}`, "too many topology spread constraints"},
		{"2,000 required terms of anti-affinity", 20, 2000,
			`"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`, hard, `]}}`,
			"too many topology spread constraints"},
		{"a few spread constraints each over keys of their own", 100, 15, `"topologySpreadConstraints":[`, spread, `]`, "too many topology keys"},
		{"5,000 tolerations", 20, 5000, `"tolerations":[`, `{"key":"k%d-%d-%d","operator":"Exists"}`, `]`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pods.json")
			if err := os.WriteFile(file, []byte(constrainedPods(test.pods, test.constraints, test.open, test.one, test.end)), 0o600); err != nil {
				t.Fatal(err)
			}
			output, peak, work := program(t, "simulate", "-f", base, "-f", file)
			t.Logf("%d MiB, %.1f CPU s", peak, work)
			if peak > 300 || work > 10 {
				t.Errorf("%d MiB and %.1f CPU s, want at most 300 and 10", peak, work)
			}
			if strings.Contains(output, "UNSCHEDULABLE other/plain") {
				t.Errorf("the other pod is unschedulable:\n%s", output)
			}
			if !strings.Contains(output, test.said) {
				t.Errorf("want %q in\n%.2000s", test.said, output)
			}
		})
	}
}

// namedPods returns pods with the given number of names each: of resources that they request, or of label keys in one
// node affinity term. one is a format with two numbers, those of the pod and of the name. The list of names replaces LIST
// in container and spec, which are further fields of these.
func namedPods(pods, names int, container, one, spec string) string {
	var text strings.Builder
	for i := range pods {
		var list []string
		for j := range names {
			list = append(list, fmt.Sprintf(one, i, j))
		}
		inside := strings.Join(list, ",")
		fmt.Fprintf(&text, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d","namespace":"tenant"},
"spec":{"containers":[{"name":"a","image":"a"%s}]%s},
"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}
`, i, strings.ReplaceAll(container, "LIST", inside), strings.ReplaceAll(spec, "LIST", inside))
	}
	return text.String()
}

// TestHostileNames checks that pods that name very many resources or label keys, which no node and no instance type
// has, take little memory and work, that other pods are still placed, and that the verdict names what is missing.
func TestHostileNames(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base.json")
	if err := os.WriteFile(base, []byte(hostileAWS), 0o600); err != nil {
		t.Fatal(err)
	}
	_, baseline, _ := program(t, "simulate", "-f", base)
	const (
		resources = `,"resources":{"requests":{LIST},"limits":{LIST}}`
		term      = `,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{
			"nodeSelectorTerms":[{"matchExpressions":[LIST]}]}}}`
		terms = `,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[LIST]}}}`
	)
	for _, test := range []struct {
		name                 string
		pods, names          int
		container, one, spec string
		said                 string
	}{
		{"25,000 resources of one pod", 1, 25_000, resources, `"a.io/p%d-r%d":"1"`, "", "a.io/p0-r0"},
		{"1,000 resources of each of 25 pods", 25, 1000, resources, `"a.io/p%d-r%d":"1"`, "", "a.io/p0-r0"},
		{"30,000 absent keys of one pod", 1, 30_000, "", `{"key":"p%d-k%d","operator":"DoesNotExist"}`, term, ""},
		{"30,000 keys of one pod", 1, 30_000, "", `{"key":"p%d-k%d","operator":"Exists"}`, term, "p0-k0"},
		{"1,600 keys of each of 10 pods, with a value each", 10, 1600, "", `{"key":"p%d-k%d","operator":"NotIn","values":["x"]}`, term, ""},
		{"1,600 keys of each of 10 pods, with a value to have each", 10, 1600, "", `{"key":"p%d-k%d","operator":"In","values":["x"]}`,
			term, "p0-k0"},
		{"20,000 terms of a key each", 1, 20_000, "", `{"matchExpressions":[{"key":"p%d-k%d","operator":"NotIn","values":["x"]}]}`,
			terms, "too many alternatives"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pods.json")
			text := namedPods(test.pods, test.names, test.container, test.one, test.spec)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			output, peak, work := program(t, "simulate", "-f", base, "-f", file)
			t.Logf("%d MiB beyond %d MiB, %.1f CPU s", peak-baseline, baseline, work)
			if peak-baseline > 100 || work > 10 {
				t.Errorf("%d MiB more than for one pod and %.1f CPU s, want at most 100 and 10", peak-baseline, work)
			}
			if strings.Contains(output, "UNSCHEDULABLE other/plain") {
				t.Errorf("the other pod is unschedulable:\n%.2000s", output)
			}
			if refused := strings.Contains(output, "UNSCHEDULABLE tenant/"); refused != (test.said != "") || !strings.Contains(output, test.said) {
				t.Errorf("refused: %t; want the text %q in\n%.2000s", refused, test.said, output)
			}
		})
	}
}

// TestHostileDaemons checks that DaemonSets with very many node affinity terms take little memory.
func TestHostileDaemons(t *testing.T) {
	base, file := filepath.Join(t.TempDir(), "base.json"), filepath.Join(t.TempDir(), "daemons.json")
	var text strings.Builder
	for i := range 20 {
		var terms []string
		for j := range 3000 {
			expression := `{"key":"%s","operator":"NotIn","values":["x%d-%d"]}`
			terms = append(terms, `{"matchExpressions":[`+fmt.Sprintf(expression, "node.kubernetes.io/instance-type", i, j)+`,`+
				fmt.Sprintf(expression, "topology.kubernetes.io/zone", i, j)+`]}`)
		}
		fmt.Fprintf(&text, `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d%d","namespace":"tenant","uid":"d%d"},"spec":{
"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}],
"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[%s]}}}}}}}
`, i, i, strings.Join(terms, ","))
	}
	for name, content := range map[string]string{base: hostileAWS, file: text.String()} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, baseline, _ := program(t, "simulate", "-f", base)
	output, peak, _ := program(t, "simulate", "-f", base, "-f", file)
	t.Logf("%d MiB beyond %d MiB", peak-baseline, baseline)
	if peak-baseline > 200 {
		t.Errorf("%d MiB more than without DaemonSets, want at most 200", peak-baseline)
	}
	if strings.Contains(output, "UNSCHEDULABLE other/plain") {
		t.Errorf("the pod is unschedulable:\n%s", output)
	}
	if !strings.Contains(output, "DaemonSet tenant/d0 is set aside: spec.template.spec.affinity.nodeAffinity: too many alternatives") {
		t.Errorf("no line about the DaemonSets:\n%.2000s", output)
	}
}
