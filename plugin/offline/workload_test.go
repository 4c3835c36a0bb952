package offline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// expanded reads objects and returns the pods of workloads that do not exist yet.
func expanded(t *testing.T, objects string) *Manifests {
	t.Helper()
	o, err := newManifests()
	if err != nil {
		t.Fatal(err)
	}
	o.readPath("-", strings.NewReader(objects))
	read := len(o.pods)
	if (&completion{o}).finish(); len(o.Problems) > 0 {
		t.Fatal(o.Problems)
	}
	o.pods = o.pods[read:]
	return o
}

const template = "template: {metadata: {labels: {app: w}}, spec: {containers: [{name: c, image: i}]}}"

var templateOfJob = strings.Replace(template, "spec: {", "spec: {restartPolicy: Never, ", 1)

// TestGivenLabels checks the labels that controllers add to those of the template.
func TestGivenLabels(t *testing.T) {
	unnumbered := func(hash string) string {
		return strings.Replace(replicaSet("w-"+hash, hash, 1), "deployment.kubernetes.io/revision", "example.com/none", 1)
	}
	const head, selector = "metadata: {name: w, namespace: ns, uid: u-1}\n", "selector: {matchLabels: {app: w}}, "
	job := map[string]string{"app": "w", "job-name": "w", "batch.kubernetes.io/job-name": "w", "controller-uid": "u-1",
		"batch.kubernetes.io/controller-uid": "u-1"}
	for name, c := range map[string]struct {
		object string
		want   map[string]string
	}{
		"Job": {"kind: Job\n" + head + "spec: {" + templateOfJob + "}", job},
		"Job with a manual selector": {"kind: Job\n" + head + "spec: {manualSelector: true, " + selector + templateOfJob + "}",
			map[string]string{"app": "w"}},
		"indexed Job": {"kind: Job\n" + head + "spec: {completionMode: Indexed, completions: 1, " + templateOfJob + "}",
			with(job, map[string]string{"batch.kubernetes.io/job-completion-index": "0"})},
		"StatefulSet": {"kind: StatefulSet\n" + head + "spec: {replicas: 1, ordinals: {start: 4}, " + selector + template +
			"}\nstatus: {updateRevision: w-5f}",
			map[string]string{"app": "w", "statefulset.kubernetes.io/pod-name": "w-4", "apps.kubernetes.io/pod-index": "4",
				"controller-revision-hash": "w-5f"}},
		"Deployment with a ReplicaSet": {"kind: Deployment\n" + head + "spec: {" + selector + template + "}\n" +
			replicaSet("w-old", "old", 9) + replicaSet("w-new", "new", 10),
			map[string]string{"app": "w", "pod-template-hash": "new"}},
		"Deployment with ReplicaSets without revisions": {"kind: Deployment\n" + head + "spec: {" + selector + template + "}\n" +
			strings.Replace(unnumbered("other"), "image: i", "image: j", 1) + unnumbered("same") +
			strings.Replace(unnumbered("third"), "image: i", "image: k", 1), map[string]string{"app": "w", "pod-template-hash": "same"}},
		"Deployment that was rolled back": {"kind: Deployment\n" + head + "spec: {" + selector + template + "}\n" +
			replicaSet("w-same", "same", 9) + strings.Replace(replicaSet("w-other", "other", 10), "image: i", "image: j", 1),
			map[string]string{"app": "w", "pod-template-hash": "same"}},
		"ReplicaSet": {"kind: ReplicaSet\n" + head + "spec: {" + selector + template + "}", map[string]string{"app": "w"}},
	} {
		t.Run(name, func(t *testing.T) {
			version := "apps/v1"
			if strings.Contains(name, "Job") {
				version = "batch/v1"
			}
			pods := expanded(t, "apiVersion: "+version+"\n"+c.object+"\n").pods
			if len(pods) != 1 {
				t.Fatalf("%d pods, want 1", len(pods))
			}
			if diff := cmp.Diff(c.want, pods[0].object.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

// replicaSet returns a ReplicaSet of the Deployment w without pods.
func replicaSet(name, hash string, revision int) string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: %s
  namespace: ns
  annotations: {deployment.kubernetes.io/revision: "%d"}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: w, uid: u-1, controller: true}]
spec:
  replicas: 0
  selector: {matchLabels: {app: w, pod-template-hash: %[3]s}}
  template: {metadata: {labels: {app: w, pod-template-hash: %[3]s}}, spec: {containers: [{name: c, image: i}]}}
`, name, revision, hash)
}

// TestDerivedHashes checks that hashes which no object shows are the same for all pods of a template.
func TestDerivedHashes(t *testing.T) {
	pods := expanded(t,
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w, namespace: ns}\n"+
			"spec: {replicas: 2, selector: {matchLabels: {app: w}}, "+template+"}\n"+
			"---\napiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c, namespace: ns}\n"+
			"spec: {schedule: '@daily', jobTemplate: {spec: {parallelism: 2, "+templateOfJob+"}}}\n").pods
	if len(pods) != 4 {
		t.Fatalf("%d pods, want 4", len(pods))
	}
	for i, name := range []string{"pod-template-hash", "", "batch.kubernetes.io/controller-uid"} {
		if name == "" {
			continue
		}
		if one, two := pods[i].object.Labels[name], pods[i+1].object.Labels[name]; one == "" || one != two {
			t.Errorf("label %s of two pods: %q and %q, want the same", name, one, two)
		}
	}
	if got := pods[2].object.Labels["job-name"]; got != "c" {
		t.Errorf("job-name is %q, want c", got)
	}
}

// TestDaemonLabels checks that the template of a DaemonSet has what its controller adds.
func TestDaemonLabels(t *testing.T) {
	o := expanded(t,
		"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: w, namespace: ns}\nspec: {selector: {matchLabels: {app: w}}, "+template+"}\n")
	labels := o.daemons[0].object.Spec.Template.Labels
	if labels["app"] != "w" || labels["pod-template-generation"] != "1" || labels["controller-revision-hash"] == "" {
		t.Errorf("labels are %v", labels)
	}
}

// ownedPod returns a running pod of the label app=w with the reference to a controller, KIND/NAME/UID; "" for none.
func ownedPod(name, controller, more string) string {
	reference := ""
	if of := strings.Split(controller, "/"); len(of) == 3 {
		version := map[string]string{"Job": "batch/v1", "Rollout": "argoproj.io/v1alpha1", "ReplicationController": "v1"}[of[0]]
		if version == "" {
			version = "apps/v1"
		}
		reference = fmt.Sprintf(", ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true}]",
			version, of[0], of[1], of[2])
	}
	return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: ns, labels: {app: w" + more + "}" + reference +
		"}\nspec: {nodeName: x, containers: [{name: c, image: i}]}\nstatus: {phase: Running}\n"
}

// TestOwnedPods checks which existing pods count for a workload of three replicas.
func TestOwnedPods(t *testing.T) {
	workload := func(kind, version, meta, spec string) string {
		return "---\napiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: w, namespace: ns" + meta + "}\nspec: {" +
			spec + "}\n"
	}
	const selected = "replicas: 3, selector: {matchLabels: {app: w}}, " + template
	deployment := workload("Deployment", "apps/v1", "", selected)
	withUID := workload("Deployment", "apps/v1", ", uid: u-1", selected)
	set := workload("StatefulSet", "apps/v1", "", selected)
	job := workload("Job", "batch/v1", "", "parallelism: 3, "+templateOfJob)
	cron := workload("CronJob", "batch/v1", "", "schedule: '@daily', jobTemplate: {spec: {parallelism: 3, "+templateOfJob+"}}")
	controller := workload("ReplicationController", "v1", "", "replicas: 3, selector: {app: w}, "+template)
	for name, c := range map[string]struct {
		objects string
		missing int
	}{
		"ReplicationController":                        {controller + ownedPod("a", "ReplicationController/w/r", "") + ownedPod("b", "", ""), 1},
		"ReplicationController without a selector":     {strings.Replace(controller, "selector: {app: w}, ", "", 1) + ownedPod("b", "", ""), 2},
		"ReplicationController and another ReplicaSet": {controller + ownedPod("a", "ReplicaSet/w/r", ""), 3},
		"none":                             {deployment, 3},
		"an orphan":                        {deployment + ownedPod("a", "", ""), 2},
		"two workloads and an orphan":      {deployment + set + ownedPod("a", "", ""), 5},
		"pod of another ReplicaSet":        {deployment + ownedPod("a", "ReplicaSet/w-canary-7c9f/r", ""), 3},
		"pod of a ReplicaSet of that name": {deployment + ownedPod("a", "ReplicaSet/w-canary/r", ""), 3},
		"ReplicaSet that is not there":     {deployment + ownedPod("a", "ReplicaSet/w-7c9f/r", ", pod-template-hash: 7c9f"), 2},
		"the same without the label":       {deployment + ownedPod("a", "ReplicaSet/w-7c9f/r", ""), 2},
		"another hash":                     {deployment + ownedPod("a", "ReplicaSet/w-7c9f/r", ", pod-template-hash: 9f"), 3},
		"an old ReplicaSet": {withUID + replicaSet("w-old", "old", 1) + replicaSet("w-new", "new", 2) +
			ownedPod("a", "ReplicaSet/w-old/r", ""), 2},
		"a ReplicaSet of another": {strings.Replace(withUID, "u-1", "u-2", 1) + replicaSet("w-old", "old", 1) +
			ownedPod("a", "ReplicaSet/w-old/r", ""), 3},
		"pod of a Rollout": {deployment + ownedPod("a", "Rollout/w/r", ""), 3},
		"StatefulSet":      {set + ownedPod("w-1", "StatefulSet/w/s", ""), 2},
		"StatefulSet that was there": {strings.Replace(set, "namespace: ns", "namespace: ns, uid: s-2", 1) +
			ownedPod("w-1", "StatefulSet/w/s-1", ""), 3},
		"a pod of another name":         {set + ownedPod("other-1", "", ""), 3},
		"Job without selector":          {job + ownedPod("a", "Job/w/j", ""), 2},
		"CronJob, its Job is not there": {cron + ownedPod("a", "Job/w-29012345/j", ""), 2},
		"Job by hand":                   {cron + ownedPod("a", "Job/w-test/j", ""), 3},
		"pod that is being deleted": {deployment + strings.Replace(ownedPod("a", "", ""), "namespace: ns",
			"namespace: ns, deletionTimestamp: 2026-01-01T00:00:00Z", 1), 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := len(expanded(t, c.objects).pods); got != c.missing {
				t.Errorf("%d pods are missing, want %d", got, c.missing)
			}
		})
	}
}

// TestFinishedWorkloads checks that workloads whose controllers create no further pods get none.
func TestFinishedWorkloads(t *testing.T) {
	job := func(meta, spec, status string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: w, namespace: ns" + meta + "}\nspec: {parallelism: 3, " + spec + templateOfJob +
			"}\nstatus: {" + status + "}\n"
	}
	const deleted = ", deletionTimestamp: 2026-01-01T00:00:00Z, finalizers: [foregroundDeletion]"
	condition := func(name, status string) string {
		return "conditions: [{type: " + name + ", status: '" + status + "'}]"
	}
	for name, c := range map[string]struct {
		objects string
		pods    int
	}{
		"a new Job":                    {job("", "completions: 3, ", ""), 3},
		"complete":                     {job("", "", condition("Complete", "True")), 0},
		"failed":                       {job("", "completions: 3, ", "failed: 1, "+condition("Failed", "True")), 0},
		"success criteria met":         {job("", "completions: 3, ", condition("SuccessCriteriaMet", "True")), 0},
		"failure target":               {job("", "completions: 3, ", condition("FailureTarget", "True")), 0},
		"not failed":                   {job("", "completions: 3, ", condition("Failed", "False")), 3},
		"work queue, a pod succeeded":  {job("", "", "succeeded: 1"), 0},
		"completions, a pod succeeded": {job("", "completions: 3, ", "succeeded: 1"), 2},
		"Job that is being deleted":    {job(deleted, "completions: 3, ", ""), 0},
		"CronJob that is being deleted": {"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: w, namespace: ns" + deleted +
			"}\nspec: {schedule: '@daily', jobTemplate: {spec: {" + templateOfJob + "}}}\n", 0},
		"Deployment that is being deleted": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w, namespace: ns" + deleted +
			"}\nspec: {selector: {matchLabels: {app: w}}, " + template + "}\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := len(expanded(t, c.objects).pods); got != c.pods {
				t.Errorf("%d new pods, want %d", got, c.pods)
			}
		})
	}
	daemon := "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: w, namespace: ns" + deleted + "}\nspec: {selector: {matchLabels: {app: w}}, " +
		template + "}\n"
	if n := len(expanded(t, daemon).daemons); n != 0 {
		t.Error("a DaemonSet that is being deleted takes capacity of new nodes, want none")
	}
}

// TestMissingIndexes checks that the pods of an indexed Job get the indexes that no pod has and that have not finished.
func TestMissingIndexes(t *testing.T) {
	job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: w, namespace: ns}\n" +
		"spec: {completionMode: Indexed, parallelism: 20, completions: 12, backoffLimitPerIndex: 1, " + templateOfJob + "}\n" +
		"status: {succeeded: 5, failed: 1, completedIndexes: '3-5,7,10', failedIndexes: '8'}\n"
	there := strings.Replace(ownedPod("a", "Job/w/j", ""), "namespace: ns",
		"namespace: ns, annotations: {batch.kubernetes.io/job-completion-index: '1'}", 1)
	var got []string
	for _, p := range expanded(t, job+there).pods {
		got = append(got, p.object.Labels["batch.kubernetes.io/job-completion-index"])
	}
	if diff := cmp.Diff([]string{"0", "2", "6", "9", "11"}, got); diff != "" {
		t.Errorf("indexes (-want +got):\n%s", diff)
	}
}

// TestRulesByGivenLabels checks that rules between pods see the labels of controllers: pods that exclude each other by
// job-name, and pods that spread by the hash of their own template only.
func TestRulesByGivenLabels(t *testing.T) {
	const spread = `topologySpreadConstraints: [{topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: DoNotSchedule,
      labelSelector: {matchLabels: {app: w}}, matchLabelKeys: [pod-template-hash]}], `
	const apart = `affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname,
      labelSelector: {matchLabels: {job-name: w}}}]}}, `
	node := `---
apiVersion: v1
kind: Node
metadata: {name: x, labels: {kubernetes.io/hostname: x}}
status:
  capacity: {cpu: 4, memory: 8Gi, pods: 20}
  allocatable: {cpu: 4, memory: 8Gi, pods: 20}
  conditions: [{type: Ready, status: "True"}]
`
	old := func(i int) string {
		return ownedPod(fmt.Sprint("old-", i), "ReplicaSet/w-old/r", ", pod-template-hash: old")
	}
	for name, c := range map[string]struct {
		objects string
		nodes   int
	}{
		"job-name": {"---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: w, namespace: ns}\nspec: {parallelism: 4, " +
			strings.Replace(templateOfJob, "spec: {", "spec: {"+apart, 1) + "}\n", 4},
		// Two pods of another template are on the node: the third counts from zero with its own.
		"matchLabelKeys": {node + old(1) + old(2) +
			"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w, namespace: ns, uid: u-1}\n" +
			"spec: {replicas: 3, selector: {matchLabels: {app: w}}, " +
			strings.Replace(template, "spec: {", "spec: {"+spread, 1) + "}\n" + replicaSet("w-old", "old", 1) + replicaSet("w-new",
			"new", 2), 0},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := newManifests()
			if err != nil {
				t.Fatal(err)
			}
			o.readPath("-", strings.NewReader(poolYAML+c.objects))
			if err := o.typesOn(""); err != nil {
				t.Fatal(err)
			}
			err = o.complete(o.newest, Policy{})
			if err != nil || len(o.Problems) > 0 {
				t.Fatal(err, o.Problems)
			}
			a := o.Decide(&Policy{Preferences: "Respect", MinValues: "Strict"}, 1).Answer()
			if len(a.Nodes) != c.nodes || len(a.Unschedulable) > 0 {
				t.Errorf("%d nodes, unschedulable: %v; want %d nodes", len(a.Nodes), a.Unschedulable, c.nodes)
			}
		})
	}
}

// TestClaimTemplates checks that a volume of a claim template takes the place of the pod template's volume of its name,
// and leaves the others.
func TestClaimTemplates(t *testing.T) {
	o := expanded(t, `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: db}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c, image: c}]
      volumes:
      - {name: data, persistentVolumeClaim: {claimName: data}}
      - {name: shared, persistentVolumeClaim: {claimName: shared}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`)
	var got []string
	for _, p := range o.pods {
		for _, v := range p.object.Spec.Volumes {
			got = append(got, p.object.Name+" "+v.Name+" "+v.PersistentVolumeClaim.ClaimName)
		}
	}
	want := []string{"db-0 shared shared", "db-0 data data-db-0", "db-1 shared shared", "db-1 data data-db-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
}
