{{/* Where a Secret of this name is seen. By its name: conf.yml is followed by pods that have the mounts of before, and what one
     provider is shown must not go to another. */}}
{{- define "spiderpool.provider.folder" -}}
/etc/spiderpool/provider/{{ . }}
{{- end }}

{{/* formerServers as conf.yml has them, with folders in place of Secrets; JSON. */}}
{{- define "spiderpool.provider.former" -}}
{{- $former := list }}
{{- range $n, $server := .Values.iaasNetworkProvider.formerServers }}
  {{- $one := omit $server "credentials" }}
  {{- if $server.credentials }}{{ $_ := set $one "credentials" (include "spiderpool.provider.folder" $server.credentials) }}{{ end }}
  {{- $former = append $former $one }}
{{- end }}
{{- toJson $former }}
{{- end }}

{{/* Names of the Secrets, each once, JSON. */}}
{{- define "spiderpool.provider.secrets" -}}
{{- $secrets := list .Values.iaasNetworkProvider.credentials }}
{{- range .Values.iaasNetworkProvider.formerServers }}{{ $secrets = append $secrets .credentials }}{{ end }}
{{- $secrets | compact | uniq | toJson }}
{{- end }}

{{/* Names of volumes are shorter than those of Secrets. */}}
{{- define "spiderpool.provider.volume" -}}
provider-{{ sha256sum . | trunc 10 }}
{{- end }}

{{/* The volumes of agent and controller with what a provider wants to see. */}}
{{- define "spiderpool.provider.volumes" -}}
{{- range include "spiderpool.provider.secrets" . | fromJsonArray }}
- name: {{ include "spiderpool.provider.volume" . }}
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0400
    optional: false
{{- end }}
{{- end }}

{{- define "spiderpool.provider.mounts" -}}
{{- range include "spiderpool.provider.secrets" . | fromJsonArray }}
- name: {{ include "spiderpool.provider.volume" . }}
  mountPath: {{ include "spiderpool.provider.folder" . }}
  readOnly: true
{{- end }}
{{- end }}

{{/* Whether any provider is called. */}}
{{- define "spiderpool.provider.called" -}}
{{- with .Values.iaasNetworkProvider }}{{ if or .serverUrl .formerServers }}true{{ end }}{{ end }}
{{- end }}

{{/* Seconds of a Go duration, with their fraction; nothing where it is none. */}}
{{- define "spiderpool.seconds" -}}
{{- $text := trimPrefix "+" . }}
{{- $part := "([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)" }}
{{- if eq $text "0" }}0{{ else if regexMatch (printf "^(%s)+$" $part) $text }}
  {{- $units := dict "ns" 0.000000001 "us" 0.000001 "µs" 0.000001 "μs" 0.000001 "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 }}
  {{- $total := 0.0 }}
  {{- range regexFindAll $part $text -1 }}
    {{- $number := regexFind "^[0-9.]+" . }}
    {{- $total = addf $total (mulf (float64 $number) (get $units (trimPrefix $number .))) }}
  {{- end }}
  {{- $total }}
{{- end }}
{{- end }}

{{/* httpRequestTimeout in whole seconds, rounded up. What agent and controller would refuse at their start is refused here, in
     the same words. */}}
{{- define "spiderpool.provider.timeout" -}}
{{- $text := .Values.iaasNetworkProvider.httpRequestTimeout | default "50s" }}
{{- $wrong := "" }}{{ $whole := 0 }}
{{- $seconds := include "spiderpool.seconds" (trimPrefix "-" $text) }}
{{- if not $seconds }}
  {{- $why := ternary "missing unit in" "invalid" (regexMatch "^[-+]?[0-9.]*[0-9][0-9.]*$" $text) }}
  {{- $wrong = printf "time: %s duration %q" $why $text }}
{{- else }}
  {{- $whole = ceil (float64 $seconds) | int64 }}
  {{- $written := ternary (duration $whole) $text (eq (float64 $whole) (float64 $seconds)) }}
  {{- if or (hasPrefix "-" $text) (le $whole 0) }}
    {{- $wrong = "timeout must be positive" }}
  {{- else if ge (float64 $seconds) 120.0 }}
    {{- $wrong = printf "timeout %s must be less than static limit 2m0s" $written }}
  {{- else if ge (float64 $seconds) 100.0 }}
    {{- $wrong = printf "timeout %s must be less than CNI client timeout 1m40s" $written }}
  {{- end }}
{{- end }}
{{- if $wrong }}{{ fail (printf "invalid iaasNetworkProvider.httpRequestTimeout %q: %s" $text $wrong) }}{{ end }}
{{- $whole }}
{{- end }}

{{/* An agent that ends finishes the call that it has begun, and what comes after it. */}}
{{- define "spiderpool.agent.gracePeriod" -}}
{{- if include "spiderpool.provider.called" . }}{{ add (include "spiderpool.provider.timeout" .) 25 }}{{ else }}15{{ end }}
{{- end }}

{{- define "spiderpool.providerSim.selector" -}}
app.kubernetes.io/name: spiderpool
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: spiderpool-provider-sim
{{- end }}
