package awssim

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// isoTime is EC2's format of times.
const isoTime = "2006-01-02T15:04:05.000Z"

func iso(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(isoTime)
}

func ec2Methods() map[string]method {
	list := func(run action, more ...string) method {
		return method{run: run, dryRun: true, params: append([]string{"Filter", "MaxResults", "NextToken"}, more...)}
	}
	all := map[string]method{
		"DescribeAvailabilityZones": {run: describeAvailabilityZones, dryRun: true,
			params: []string{"Filter", "ZoneName", "ZoneId", "AllAvailabilityZones"}},
		"DescribeSubnets":               list(describeSubnets, "SubnetId"),
		"DescribeSecurityGroups":        list(describeSecurityGroups, "GroupId", "GroupName"),
		"DescribeImages":                list(describeImages, "ExecutableBy", "ImageId", "Owner", "IncludeDeprecated"),
		"DescribeInstanceTypes":         list(describeInstanceTypes, "InstanceType"),
		"DescribeInstanceTypeOfferings": list(describeInstanceTypeOfferings, "LocationType"),
		"DescribeSpotPriceHistory": list(describeSpotPriceHistory, "AvailabilityZone", "AvailabilityZoneId", "InstanceType", "ProductDescription",
			"StartTime", "EndTime"),
		"DescribeInstances":            list(describeInstances, "InstanceId"),
		"DescribeInstanceStatus":       list(describeInstanceStatus, "InstanceId", "IncludeAllInstances"),
		"DescribeVolumeStatus":         list(describeVolumeStatus, "VolumeId"),
		"DescribeLaunchTemplates":      list(describeLaunchTemplates, "LaunchTemplateId", "LaunchTemplateName"),
		"DescribeCapacityReservations": list(describeCapacityReservations, "CapacityReservationId"),
		"DescribeReservedInstances": {run: describeReservedInstances, dryRun: true,
			params: []string{"Filter", "OfferingClass", "OfferingType", "ReservedInstancesId"}},
		"DescribePlacementGroups": {run: describePlacementGroups, dryRun: true, params: []string{"Filter", "GroupId", "GroupName"}},
		"CreateLaunchTemplate": {run: createLaunchTemplate, dryRun: true, late: true,
			params: []string{"ClientToken", "LaunchTemplateData", "LaunchTemplateName", "TagSpecification", "VersionDescription"}},
		"DeleteLaunchTemplate": {run: deleteLaunchTemplate, dryRun: true, params: []string{"LaunchTemplateId", "LaunchTemplateName"}},
		"CreateFleet": {run: createFleet, dryRun: true, late: true, params: []string{"ClientToken", "Context", "LaunchTemplateConfigs",
			"OnDemandOptions", "ReservedCapacityOptions", "SpotOptions", "TagSpecification", "TargetCapacitySpecification", "Type"}},
		"RunInstances": {run: runInstances, dryRun: true, late: true,
			params: []string{"BlockDeviceMapping", "ClientToken", "CapacityReservationSpecification", "CpuOptions", "EnclaveOptions",
				"IamInstanceProfile", "ImageId", "InstanceMarketOptions", "InstanceType", "LaunchTemplate", "MaxCount",
				"MaintenanceOptions", "MetadataOptions", "MinCount", "Monitoring",
				"NetworkInterface", "Placement", "SecurityGroupId", "SubnetId", "TagSpecification", "UserData"}},
		"TerminateInstances": {run: terminateInstances, dryRun: true, late: true, params: []string{"InstanceId"}},
		"CreateTags":         {run: createTags, dryRun: true, late: true, params: []string{"ResourceId", "Tag"}},
	}
	for name, filters := range ec2Filters {
		m := all[name]
		m.filters = filters
		all[name] = m
	}
	return all
}

// ec2Tag is a tag in EC2's responses.
type ec2Tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func ec2Tags(tags map[string]string) []ec2Tag {
	var out []ec2Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, ec2Tag{key, tags[key]})
	}
	return out
}

// tagsIn parses a list of tags by EC2's rules.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions
func tagsIn(n *node, path string) (map[string]string, error) {
	tags := map[string]string{}
	for _, item := range n.items(path) {
		key, value := item.str("Key"), item.str("Value")
		switch {
		case key == "":
			return nil, refuse("MissingParameter", "The request must contain the parameter tagKey")
		case len([]rune(key)) > 128:
			return nil, refuse("InvalidParameterValue", "Tag key exceeds the maximum length of 128 characters")
		case len([]rune(value)) > 256:
			return nil, refuse("InvalidParameterValue", "Tag value exceeds the maximum length of 256 characters")
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return nil, refuse("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
		}
		if _, twice := tags[key]; twice {
			return nil, refuse("InvalidParameterValue", "Duplicate tag key '%s' specified.", key)
		}
		tags[key] = value
	}
	if len(tags) > 50 {
		return nil, refuse("TagLimitExceeded", "More than 50 tags specified")
	}
	return tags, nil
}

// tagSpecs parses the tags per type of resource. Only the listed types are accepted.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_TagSpecification.html
func tagSpecs(n *node, types ...string) (map[string]map[string]string, error) {
	specs := map[string]map[string]string{}
	for _, item := range n.items("TagSpecification") {
		kind := item.str("ResourceType")
		if !slices.Contains(types, kind) {
			return nil, refuse("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", kind)
		}
		if _, twice := specs[kind]; twice {
			return nil, refuse("InvalidParameterValue", "Duplicate resource type '%s' in tag specifications.", kind)
		}
		tags, err := tagsIn(item, "Tag")
		if err != nil {
			return nil, err
		}
		specs[kind] = tags
	}
	return specs, nil
}

// chosen returns the items with those IDs, in the order of the IDs, or all if there are none. An unknown ID is an
// error.
func chosen[T any](ids []string, items []T, id func(T) string, unknown func(id string) error) ([]T, error) {
	if len(ids) == 0 {
		return slices.Clone(items), nil
	}
	var found []T
	for _, want := range ids {
		k := slices.IndexFunc(items, func(item T) bool { return id(item) == want })
		if k < 0 {
			return nil, unknown(want)
		}
		found = append(found, items[k])
	}
	return found, nil
}

// notFound returns the error for an unknown ID: malformed if it does not have the format of an ID.
func notFound(prefix, malformed, missing, what string) func(string) error {
	return func(id string) error {
		if !strings.HasPrefix(id, prefix) {
			return refuse(malformed, "Invalid id: \"%s\" (expecting \"%s...\")", id, prefix)
		}
		return refuse(missing, "The %s '%s' does not exist", what, id)
	}
}

// idempotent is the request and the response for a client token.
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html
type idempotent struct {
	request string
	out     any
}

// once returns the first response for a repeated request, and rejects a different request with the same token.
func (c *Cloud) once(r *request, do func() (any, error)) (any, error) {
	token := r.form.str("ClientToken")
	if token == "" {
		return do()
	}
	if len(token) > 64 {
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter clientToken is invalid. It must be at most 64 characters.", token)
	}
	key, same := r.action+" "+token, canonical(r.values)
	if before, ok := c.tokens[key]; ok && c.strike(r, FaultIgnoreTokens) == nil {
		if before.request != same {
			return nil, refuse("IdempotentParameterMismatch", "The client token %s was used with other parameters before.", token)
		}
		return before.out, nil
	}
	out, err := do()
	if err == nil {
		c.tokens[key] = idempotent{same, out}
	}
	return out, err
}
