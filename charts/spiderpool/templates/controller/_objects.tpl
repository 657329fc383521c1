{{/* Entries for the objects of our own group, of (dict "root" $ "step" "mutate" "ca" $ca) or "validate". Only they wait for us
     when no controller answers: their policy needs nothing of what makes one for pods safe. */}}
{{- define "spiderpool.controller.objectEntries" -}}
{{- range $kind, $plural := dict "spiderippool" "spiderippools" "spidermultusconfig" "spidermultusconfigs" "spiderreservedip" "spiderreservedips" }}
- name: {{ $kind }}-{{ $.step }}.spiderpool.spidernet.io
  admissionReviewVersions: [v1]
  sideEffects: None
  matchPolicy: Equivalent
  {{- if eq $.step "mutate" }}
  reinvocationPolicy: IfNeeded
  {{- end }}
  failurePolicy: Fail
  timeoutSeconds: 5
  clientConfig:
    {{- include "spiderpool.controller.clientConfig" (dict "root" $.root "path" (printf "/%s-spiderpool-spidernet-io-v2beta1-%s" $.step $kind) "ca" $.ca) | nindent 4 }}
  rules:
    - apiGroups: [spiderpool.spidernet.io]
      apiVersions: [v2beta1]
      resources: [{{ $plural }}]
      operations: [CREATE, UPDATE]
      scope: {{ eq $kind "spidermultusconfig" | ternary "Namespaced" "Cluster" }}
{{- end }}
{{- end }}
