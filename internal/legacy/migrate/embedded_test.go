package migrate

import (
	"strings"
	"testing"
)

// TestEmbeddedValues verifies that values inside of objects of Flux and Argo CD are migrated in place.
func TestEmbeddedValues(t *testing.T) {
	const release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\nspec:\n"
	const application = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n  source:\n" +
		"    chart: karpenter\n    helm:\n"
	const foreign = "is the repository of another program's chart"
	for name, c := range map[string]struct {
		text, want string // want is in what is printed
		notes      []string
	}{
		"HelmRelease": {release + "  chart: {spec: {chart: karpenter}}\n  values:\n" +
			"    settings: {aws: {clusterName: a, isolatedVPC: \"yes\"}}\n  valuesFrom: [{kind: Secret, name: s}]\n",
			"    settings:\n      clusterName: a\n      isolatedVPC: \"yes\"\n", []string{
				"changed spec.values.settings.aws.clusterName: is renamed to settings.clusterName", "changed spec.values.settings.aws.isolatedVPC: ",
				`impossible spec.values.settings.isolatedVPC: got string, want null or boolean`,
				"advice spec.valuesFrom[0]: the values in Secret s are not read"}},
		"HelmRelease by its values": {release + "  values: {settings: {interruptionQueueName: '${Q}'}}\n", "interruptionQueue: ", []string{
			"changed spec.values.settings.interruptionQueueName: ", `advice spec.values.settings.interruptionQueue: is "${Q}"`}},
		"HelmRelease of another chart": {release + "  chart: {spec: {chart: other}}\n  values: {settings: {a: b}}\n", "settings: {a: b}", nil},
		"HelmRepository": {"apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: k}\n" +
			"spec: {url: oci://public.ecr.aws/karpenter}\n",
			"public.ecr.aws", []string{"advice spec.url: " + foreign}},
		"Application, text": {application + "      values: |\n        # why\n        controller: {logLevel: debug}\n",
			"      values: |\n        # why\n        logLevel: debug\n",
			[]string{"changed spec.source.helm.values.controller.logLevel: is renamed to logLevel"}},
		"Application, object": {application + "      valuesObject: {webhook: {enabled: true}, replica: 1}\n      valueFiles: [v.yaml]\n",
			"valuesObject: {replica: 1}", []string{
				"changed spec.source.helm.valuesObject.webhook: has no effect",
				"impossible spec.source.helm.valuesObject.replica: is not a value of the chart; did you mean replicas?",
				"advice spec.source.helm.valueFiles[0]: the values in v.yaml are not read"}},
		"Application, parameters": {application + "      parameters:\n      - {name: settings.aws.clusterName, value: a}\n" +
			"      - {name: settings.tags.a, value: b}\n      - {name: settings.clustrName, value: c}\n",
			"- {name: settings.clusterName, value: a}", []string{"changed spec.source.helm.parameters[0]: settings.aws.clusterName is renamed " +
				"to settings.clusterName",
				"impossible spec.source.helm.parameters[1]: settings.tags.a has no effect: set spec.tags",
				"impossible spec.source.helm.parameters[2]: settings.clustrName is not"}},
		"Application, chart below the registry": {"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n  source:\n" +
			"    chart: karpenter/karpenter\n    repoURL: public.ecr.aws\n    helm:\n      parameters:\n" +
			"      - {name: settings.aws.clusterName, value: a}\n      - {name: settings.interuptionQueue, value: a}\n",
			"- {name: settings.clusterName, value: a}", []string{"advice spec.source.repoURL: " + foreign,
				"changed spec.source.helm.parameters[0]: settings.aws.clusterName is renamed",
				"impossible spec.source.helm.parameters[1]: settings.interuptionQueue is not"}},
		"Application, chart in the OCI repository": {"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n  source:\n" +
			"    repoURL: oci://public.ecr.aws/karpenter/karpenter\n    path: .\n    helm: {valuesObject: {replica: 1}}\n",
			"replica: 1", []string{"impossible spec.source.helm.valuesObject.replica: is not a value of the chart",
				"advice spec.source.repoURL: " + foreign}},
		"Application, another chart of the registry": {"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n" +
			"  source: {chart: karpenter/karpenter-crd, repoURL: public.ecr.aws, helm: {valuesObject: {replica: 1}}}\n", "replica: 1", nil},
		"HelmRelease, chart below the registry": {release + "  chart: {spec: {chart: karpenter/karpenter}}\n  values: {replica: 1}\n",
			"replica: 1", []string{"impossible spec.values.replica: is not a value of the chart"}},
		"HelmRelease of a chart that depends on it": {release + "  chart: {spec: {chart: platform}}\n" +
			"  values: {settings: {a: b}, karpenter: {settings: {interruptionQueueName: q}}}\n",
			"values: {settings: {a: b}, karpenter: {settings: {interruptionQueue: q}}}",
			[]string{"changed spec.values.karpenter.settings.interruptionQueueName: "}},
		"ApplicationSet": {"apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n" +
			"      sources:\n      - repoURL: public.ecr.aws/karpenter\n" +
			"        chart: karpenter\n        helm: {valuesObject: {settings: {clusterName: '{{name}}', interruptionQueueName: q}}}\n",
			"interruptionQueue: q",
			[]string{"changed spec.template.spec.sources[0].helm.valuesObject.settings.interruptionQueueName: ",
				"advice spec.template.spec.sources[0].repoURL: " + foreign}},
		"ConfigMap": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  values.yaml: |\n" +
			"    settings: {interruptionQueueName: q}\n  other: x\n",
			"    settings:\n      interruptionQueue: q\n  other: x\n", []string{"changed data[values.yaml].settings.interruptionQueueName: "}},
	} {
		t.Run(name, func(t *testing.T) {
			result := checkNotes(t, []File{{Name: "in.yaml", Text: []byte(c.text)}}, c.notes)
			if !strings.Contains(string(result.Manifests), c.want) {
				t.Errorf("printed\n%s, want it to contain\n%s", result.Manifests, c.want)
			}
			again := Run([]File{{Name: "in.yaml", Text: result.Manifests}}, Options{})
			if again.Changed {
				t.Errorf("migrated again it changes:\n%s", again.Report.Text())
			}
		})
	}
}

// TestEmbeddedSettings verifies that Provisioners are translated with the settings of values inside of other objects.
func TestEmbeddedSettings(t *testing.T) {
	in := "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\n" +
		"spec: {values: {settings: {aws: {defaultInstanceProfile: p}}}}\n---\n" +
		"apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\n" +
		"spec: {provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}\n"
	if got := string(Run([]File{{Name: "in", Text: []byte(in)}}, Options{}).Manifests); !strings.Contains(got, "instanceProfile: p") {
		t.Errorf("the class has not the instance profile of the values:\n%s", got)
	}
}
