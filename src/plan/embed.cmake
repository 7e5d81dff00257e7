# embed(FOLDER): writes FOLDER_files.cc with every FOLDER/*.json as a raw string.
function(embed folder)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.json)
  set(entries "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME)
    file(READ ${file} text)
    string(APPEND entries "      {\"${folder}/${name}\", R\"json(${text})json\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${folder}_files.cc @ONLY CONTENT
"#include \"plan/embedded.h\"

namespace sluice {

std::span<const EmbeddedFile> @folder@_files() {
  static constexpr EmbeddedFile kFiles[] = {
@entries@  };
  return kFiles;
}

}  // namespace sluice
")
endfunction()
