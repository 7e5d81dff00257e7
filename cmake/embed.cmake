# embed(FOLDER [PATTERN]...): writes NAME_files.cc, NAME being the folder's last part, with every
# file of FOLDER that matches (default *.json) as a raw string; see base/embedded.h.
function(embed folder)
  set(patterns ${ARGN})
  if(NOT patterns)
    set(patterns *.json)
  endif()
  list(TRANSFORM patterns PREPEND ${PROJECT_SOURCE_DIR}/${folder}/)
  file(GLOB files CONFIGURE_DEPENDS ${patterns})
  get_filename_component(set ${folder} NAME)
  set(entries "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME)
    file(READ ${file} text)
    string(APPEND entries "      {\"${folder}/${name}\", R\"file(${text})file\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${set}_files.cc @ONLY CONTENT
"#include \"base/embedded.h\"

namespace sluice {

std::span<const EmbeddedFile> @set@_files() {
  static constexpr EmbeddedFile kFiles[] = {
@entries@  };
  return kFiles;
}

}  // namespace sluice
")
endfunction()
